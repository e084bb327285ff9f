"""Clients whom nobody answers: each is told so as soon as its patience ends. Upstream's SQS clients never are."""

import time
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from signalbox.rendezvous.amp import armor
from signalbox.rendezvous.client import new_client_id
from signalbox.rendezvous.nat import Nat
from signalbox.rendezvous.offer import offer_body
from signalbox.rendezvous.simulator import Behaviour, sample_offer
from tests.integration.amp import amp_path
from tests.integration.parties import (
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

# SQS makes a message visible within a second, and hands it over within another; the rest is for slow machines.
GRACE_SECONDS = 5


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
    waiting = {
        "SQS, silent proxy": _by_sqs(everybody, Nat.RESTRICTED, silent=True),
        "HTTP, silent proxy": _by_http(everybody, "POST", "client", silent=True),
        "older form, silent proxy": _by_http(everybody, "POST", "client", legacy=True, silent=True),
        "SQS, no proxy": _by_sqs(everybody, Nat.UNRESTRICTED),
        "HTTP, no proxy": _by_http(everybody, "POST", "client"),
        "older form, no proxy": _by_http(everybody, "POST", "client", legacy=True),
        "AMP, no proxy": _by_http(everybody, "GET", amp_path(offer_body(sample_offer("amp"), Nat.UNRESTRICTED))),
    }
    return {name: future.result(2 * PATIENCE_SECONDS) for name, future in waiting.items()}


def _by_sqs(parties: Parties, nat: Nat, *, silent: bool = False) -> Future[Told]:
    asked = parties.ask(nat)
    wait_for(lambda: parties.record(asked.client_id), "the offer parked")
    _take(parties, asked.offer, silent=silent)
    return parties.pool.submit(_told_by_sqs, parties, asked)


def _told_by_sqs(parties: Parties, asked: Asked) -> Told:
    text = parties.reply(asked.client_id, seconds=2 * PATIENCE_SECONDS)
    return Told(asked.seconds_since(), 200, text)


def _by_http(parties: Parties, method: str, path: str, *, legacy: bool = False, silent: bool = False) -> Future[Told]:
    offer = sample_offer(new_client_id())
    body = offer if legacy else offer_body(offer, Nat.UNRESTRICTED)
    headers = {"Snowflake-NAT-Type": "unrestricted"}
    before = len(parties.open_offers())
    told = parties.pool.submit(_told_by_http, parties, method, path, body=body, headers=headers)
    wait_for(lambda: len(parties.open_offers()) > before, "the offer parked")
    _take(parties, offer, silent=silent)
    return told


def _told_by_http(parties: Parties, method: str, path: str, **request: object) -> Told:
    started = time.monotonic()
    response: HttpResponse = parties.http(method, path, **request)
    return Told(time.monotonic() - started, response.status, response.body)


def _take(parties: Parties, offer: str, *, silent: bool) -> None:
    if silent:
        served = parties.proxy(behaviour=Behaviour.SILENT).serve_once()
        assert served.response is not None
        assert served.response.offer == offer


@pytest.mark.parametrize(
    ("client", "status", "text"),
    [
        ("SQS, no proxy", 200, DENIED),
        ("SQS, silent proxy", 200, TIMED_OUT),
        ("HTTP, no proxy", 200, DENIED),
        ("HTTP, silent proxy", 200, TIMED_OUT),
        ("older form, no proxy", 503, ""),
        ("older form, silent proxy", 504, ""),
        ("AMP, no proxy", 200, armor(DENIED)),
    ],
)
def test_a_client_whom_nobody_answers_is_told_so_as_soon_as_its_patience_ends(told, client, status, text):
    patience = PATIENCE_SECONDS if client.startswith("SQS") else HTTP_PATIENCE_SECONDS

    assert (told[client].status, told[client].text) == (status, text)
    assert patience <= told[client].seconds < patience + GRACE_SECONDS


def test_nothing_of_them_is_left(told, everybody: Parties):
    assert everybody.open_offers() == []
    wait_for(lambda: everybody.waiting_messages() == 0, "the offers deleted")
