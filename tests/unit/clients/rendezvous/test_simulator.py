"""The simulator: sample offers and answers that the broker accepts, and each behaviour of a proxy."""

import json
import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.clients.rendezvous.simulator import (
    BrokerUnreachableError,
    ProxySimulator,
    new_session_id,
    post,
    sample_answer,
    sample_offer,
    wait_for_proxy,
)
from signalbox.rendezvous.model.pace import ProxyKind
from signalbox.rendezvous.reporting.pages import debug_page
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import Offer, offer_body
from signalbox.rendezvous.wire.proxy import MATCH, NO_MATCH, ProxyAnswer, ProxyPoll, answer_response, poll_response
from signalbox.rendezvous.wire.sdp import best_candidate_address, sdp_of
from tests.fakes.http_endpoint import Handler, serving

OFFER = sample_offer("a client")
MATCHED = poll_response(MATCH, offer=OFFER, nat=Nat.RESTRICTED, next_poll=20000, relay_url="wss://r.example/").encode()


@dataclass
class FakeBroker:
    """A fake POST that returns responses from a list and records the requests."""

    responses: list
    posted: list = field(default_factory=list)
    slept: list = field(default_factory=list)

    def post(self, url, body, *, headers, timeout_seconds):
        self.posted.append((url, body, headers, timeout_seconds))
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    def proxy(self, **settings):
        return ProxySimulator(
            "http://broker.example/base/",
            post=self.post,
            sleep=self.slept.append,
            new_session_id=lambda: "sid",
            **settings,
        )


def test_a_sample_offer_has_the_size_of_a_real_one():
    assert len(offer_body(OFFER)) == pytest.approx(1250, abs=50)


@given(st.text())
def test_a_sample_offer_passes_the_brokers_parser(seed):
    body = offer_body(sample_offer(seed), nat="restricted").encode()

    assert Offer.parse(body, DEFAULT_BRIDGES).session_description == sample_offer(seed)


@given(st.text(), st.text())
def test_each_seed_has_its_own_offer(one, other):
    assert (sample_offer(one) == sample_offer(other)) == (one == other)


def test_a_sample_offer_contains_the_clients_address():
    sdp = sdp_of(sample_offer("a client", address="203.0.113.9"))

    assert best_candidate_address(sdp) == "203.0.113.9"


def test_an_answer_belongs_to_one_offer_and_one_proxy():
    answer = sample_answer(OFFER)

    assert json.loads(answer)["type"] == "answer"
    assert answer == sample_answer(OFFER)
    assert answer != sample_answer(sample_offer("another client"))
    assert answer != sample_answer(OFFER, address="198.51.100.8")


def test_only_an_offer_is_answered():
    with pytest.raises(InvalidMessage):
        sample_answer("hello")


def test_a_normal_proxy_polls_and_answers():
    broker = FakeBroker([MATCHED, answer_response(accepted=True).encode()])

    turn = broker.proxy(nat=Nat.UNKNOWN, proxy_type="webext").serve_once()

    (poll_url, poll, poll_headers, timeout), (answer_url, answer, _, _) = broker.posted
    assert (poll_url, answer_url) == ("http://broker.example/base/proxy", "http://broker.example/base/answer")
    assert ProxyPoll.parse(poll) == ProxyPoll("sid", "webext", Nat.UNKNOWN, 0, "snowflake.torproject.net$")
    assert (poll_headers, timeout) == ({}, 30)
    assert ProxyAnswer.parse(answer) == ProxyAnswer("sid", sample_answer(OFFER))
    assert turn.response.relay_url == "wss://r.example/"
    assert turn.accepted is True


def test_a_proxy_with_a_late_answer_is_not_accepted():
    broker = FakeBroker([MATCHED, answer_response(accepted=False).encode()])

    assert broker.proxy().serve_once().accepted is False


def test_without_a_client_no_answer_is_sent():
    broker = FakeBroker([poll_response(NO_MATCH, next_poll=20000).encode()])

    turn = broker.proxy().serve_once()

    assert (turn.response.next_poll_milliseconds, turn.accepted) == (20000, None)
    assert len(broker.posted) == 1


def test_a_silent_proxy_receives_the_offer_and_sends_no_answer():
    broker = FakeBroker([MATCHED])

    turn = broker.proxy(is_silent=True).serve_once()

    assert (turn.response.offer, turn.accepted) == (OFFER, None)
    assert len(broker.posted) == 1


def test_a_proxy_without_relay_patterns_sends_none():
    broker = FakeBroker([poll_response(NO_MATCH, next_poll=0).encode()])

    broker.proxy(relay_pattern=None).serve_once()

    assert ProxyPoll.parse(broker.posted[0][1]).relay_pattern is None


def test_a_proxy_may_send_any_x_forwarded_for():
    broker = FakeBroker([poll_response(NO_MATCH, next_poll=0).encode()])

    broker.proxy(comes_from="8.8.8.8").serve_once()

    assert broker.posted[0][2] == {"X-Forwarded-For": "8.8.8.8"}


def test_session_ids_are_those_of_the_go_proxy():
    assert len(new_session_id()) == 22
    assert new_session_id() != new_session_id()


@pytest.fixture
def server():
    """A server on loopback that returns the request body with the status in the path."""

    class Echo(Handler):
        def respond(self):
            if self.path == "/hang":
                hanging.wait(5)
                return
            sent = json.dumps([self.headers["X-Forwarded-For"], self.received().decode()])
            self.answer(sent, status=int(self.path.removeprefix("/")))

    hanging = threading.Event()
    with serving(Echo) as url:
        yield url
        hanging.set()


def test_a_post_by_http(server):
    body = post(f"{server}/200", b"hello", headers={"X-Forwarded-For": "8.8.8.8"}, timeout_seconds=5)

    assert json.loads(body) == ["8.8.8.8", "hello"]


@pytest.mark.parametrize("path", ["400", "202", "500", "hang"])
def test_any_status_but_200_and_a_timeout_are_errors(server, path):
    with pytest.raises(BrokerUnreachableError):
        post(f"{server}/{path}", b"hello", headers={}, timeout_seconds=0.2)


def test_a_proxy_polls_again_until_it_has_a_client():
    broker = FakeBroker([poll_response(NO_MATCH, next_poll=5000).encode(), MATCHED, b'{"Status":"success"}'])

    assert broker.proxy().serve().accepted
    assert broker.slept == [0.2]


def test_waiting_for_a_proxy_ends_when_the_broker_has_one():
    pages = [debug_page({}), debug_page({}), debug_page({ProxyKind(Nat.RESTRICTED, "webext"): 1})]
    waits = []

    class Debug(Handler):
        def respond(self):
            self.answer(pages.pop(0))

    with serving(Debug) as url:
        wait_for_proxy(f"{url}/", sleep=waits.append)

    assert pages == []
    assert len(waits) == 2
