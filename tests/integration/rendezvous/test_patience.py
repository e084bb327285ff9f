"""Clients without an answer get a reply as soon as their patience ends; upstream sends its SQS clients none."""

import time
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from signalbox.clients.rendezvous.amp import amp_path
from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.rendezvous.wire.amp import armor
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.integration.rendezvous.peers import (
    DENIED,
    HTTP_PATIENCE_SECONDS,
    PATIENCE_SECONDS,
    TIMED_OUT,
    Asked,
    HttpResponse,
    Parties,
)
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

# SQS makes a message visible within a second and delivers it within another; the rest is for slow cold starts.
GRACE_SECONDS = 15


@dataclass(frozen=True, slots=True)
class TimedReply:
    """A client's reply, and the seconds until it arrived."""

    seconds: float
    status: int
    text: str


@pytest.fixture(scope="module")
def replies(all_parties: Parties) -> dict[str, TimedReply]:
    """Send all offers concurrently and return all replies by client."""
    all_parties.wait_until_nothing_waits()
    all_parties.expect_proxies(*Nat)
    silent = [all_parties.wait(all_parties.proxy(is_silent=True)) for _ in range(3)]
    given_away = {
        "SQS, silent proxy": _by_sqs(all_parties),
        "HTTP, silent proxy": _by_http(all_parties, "POST", "client", body=_offer_body()),
        "older form, silent proxy": _by_http(all_parties, "POST", "client", body=_new_offer()),
    }
    assert all(proxy.offer() for proxy in silent)
    left_alone = {
        "SQS, no proxy": _by_sqs(all_parties),
        "HTTP, no proxy": _by_http(all_parties, "POST", "client", body=_offer_body()),
        "older form, no proxy": _by_http(all_parties, "POST", "client", body=_new_offer()),
        "AMP, no proxy": _by_http(all_parties, "GET", amp_path(_offer_body())),
    }
    return {name: future.result(3 * PATIENCE_SECONDS) for name, future in (given_away | left_alone).items()}


def _new_offer() -> str:
    return sample_offer(new_client_id())


def _offer_body() -> str:
    return offer_body(_new_offer(), Nat.UNRESTRICTED)


def _by_sqs(parties: Parties) -> Future[TimedReply]:
    return parties.pool.submit(_reply_by_sqs, parties, parties.ask(Nat.UNRESTRICTED))


def _by_http(parties: Parties, method: str, path: str, *, body: str = "") -> Future[TimedReply]:
    headers = {"Snowflake-NAT-Type": "unrestricted"}  # has an effect on legacy offers only
    return parties.pool.submit(_reply_by_http, parties, method, path, body=body, headers=headers)


def _reply_by_sqs(parties: Parties, asked: Asked) -> TimedReply:
    text = parties.reply(asked.client_id, seconds=2 * PATIENCE_SECONDS)
    return TimedReply(asked.seconds_since(), 200, text)


def _reply_by_http(parties: Parties, method: str, path: str, **request: object) -> TimedReply:
    started = time.monotonic()
    response: HttpResponse = parties.http(method, path, **request)
    return TimedReply(time.monotonic() - started, response.status, response.body)


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
def test_a_client_without_an_answer_gets_a_reply_as_soon_as_its_patience_ends(replies, client):
    patience = PATIENCE_SECONDS if client.startswith("SQS") else HTTP_PATIENCE_SECONDS

    assert (replies[client].status, replies[client].text) == EXPECTED[client]
    assert patience <= replies[client].seconds < patience + GRACE_SECONDS


def test_no_message_of_these_clients_is_left(replies, all_parties: Parties):
    assert all_parties.open_offers() == []
    wait_for(lambda: all_parties.waiting_messages() == 0, "the offers deleted")
