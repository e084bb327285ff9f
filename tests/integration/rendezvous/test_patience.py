"""Clients whom nobody answers: each is told so as soon as its patience ends. Upstream's SQS clients never are."""

import time
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import Behaviour, sample_offer
from signalbox.rendezvous.wire.amp import armor
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.integration.rendezvous.amp import amp_path
from tests.integration.rendezvous.peers import (
    DENIED,
    HTTP_PATIENCE_SECONDS,
    PATIENCE_SECONDS,
    TIMED_OUT,
    Asked,
    HttpResponse,
    Parties,
    wait_for,
)

pytestmark = pytest.mark.emulator

# SQS makes a message visible within a second, and hands it over within another; the rest is for slow machines, on
# which a function takes its time to start.
GRACE_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Told:
    """What a client was told, after how long."""

    seconds: float
    status: int
    text: str


@pytest.fixture(scope="module")
def told(everybody: Parties) -> dict[str, Told]:
    """All of them wait side by side, and here for the last of them."""
    everybody.wait_until_nothing_waits()
    everybody.expect_proxies(*Nat)
    # All three are held before the first offer comes: an offer goes back to the pool after a while.
    silent = [everybody.hold(everybody.proxy(behaviour=Behaviour.SILENT)) for _ in range(3)]
    given_away = {
        "SQS, silent proxy": _by_sqs(everybody),
        "HTTP, silent proxy": _by_http(everybody, "POST", "client", body=_offer_body()),
        "older form, silent proxy": _by_http(everybody, "POST", "client", body=_new_offer()),
    }
    assert all(proxy.offer() for proxy in silent)
    left_alone = {
        "SQS, no proxy": _by_sqs(everybody),
        "HTTP, no proxy": _by_http(everybody, "POST", "client", body=_offer_body()),
        "older form, no proxy": _by_http(everybody, "POST", "client", body=_new_offer()),
        "AMP, no proxy": _by_http(everybody, "GET", amp_path(_offer_body())),
    }
    return {name: future.result(3 * PATIENCE_SECONDS) for name, future in (given_away | left_alone).items()}


def _new_offer() -> str:
    return sample_offer(new_client_id())


def _offer_body() -> str:
    return offer_body(_new_offer(), Nat.UNRESTRICTED)


def _by_sqs(parties: Parties) -> Future[Told]:
    return parties.pool.submit(_told_by_sqs, parties, parties.ask(Nat.UNRESTRICTED))


def _by_http(parties: Parties, method: str, path: str, *, body: str = "") -> Future[Told]:
    headers = {"Snowflake-NAT-Type": "unrestricted"}  # heeded in the older form only
    return parties.pool.submit(_told_by_http, parties, method, path, body=body, headers=headers)


def _told_by_sqs(parties: Parties, asked: Asked) -> Told:
    text = parties.reply(asked.client_id, seconds=2 * PATIENCE_SECONDS)
    return Told(asked.seconds_since(), 200, text)


def _told_by_http(parties: Parties, method: str, path: str, **request: object) -> Told:
    started = time.monotonic()
    response: HttpResponse = parties.http(method, path, **request)
    return Told(time.monotonic() - started, response.status, response.body)


EXPECTED = {
    "SQS, no proxy": (200, DENIED),
    "SQS, silent proxy": (200, TIMED_OUT),
    "HTTP, no proxy": (200, DENIED),
    "HTTP, silent proxy": (200, TIMED_OUT),
    "older form, no proxy": (503, ""),
    "older form, silent proxy": (504, ""),
    "AMP, no proxy": (200, armor(DENIED)),
}


@pytest.mark.parametrize("client", EXPECTED)
def test_a_client_whom_nobody_answers_is_told_so_as_soon_as_its_patience_ends(told, client):
    patience = PATIENCE_SECONDS if client.startswith("SQS") else HTTP_PATIENCE_SECONDS

    assert (told[client].status, told[client].text) == EXPECTED[client]
    assert patience <= told[client].seconds < patience + GRACE_SECONDS


def test_nothing_of_them_is_left(told, everybody: Parties):
    assert everybody.open_offers() == []
    wait_for(lambda: everybody.waiting_messages() == 0, "the offers deleted")
