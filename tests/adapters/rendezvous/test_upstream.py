"""Offers that are posted to an existing broker, on loopback."""

from collections.abc import Iterator

import pytest

from signalbox.aws.rendezvous.upstream import HttpBroker
from tests.fakes.snowflake_broker import ANSWER, NO_PROXIES, TIMED_OUT, Broker, running_broker

OFFER = b"1.0\n{}"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with running_broker() as broker:
        yield broker


def reply(broker: Broker, body: bytes = OFFER, *, timeout: float = 11) -> str:
    return HttpBroker(broker.url, timeout=timeout).reply(body)


def test_an_offer_is_posted_as_it_is_and_the_brokers_reply_returned(broker):
    assert reply(broker) == ANSWER
    assert broker.offers == [("/broker/client", OFFER)]


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, b"overloaded"), (302, b""), (200, b"<html>"), (200, b"{}"), (200, b"\xff")],
    ids=["5xx", "redirect", "no JSON", "empty", "no text"],
)
def test_a_broker_without_a_reply_has_no_proxies(broker, status, body):
    broker.status, broker.body = status, body

    assert reply(broker) == NO_PROXIES


def test_a_broker_without_tls_where_tls_is_expected_has_no_proxies(broker):
    broker.url = broker.url.replace("http:", "https:")

    assert reply(broker) == NO_PROXIES
    assert broker.offers == []


def test_a_late_broker_is_a_timeout(broker):
    broker.is_late = True

    assert reply(broker, timeout=0.05) == TIMED_OUT


def test_a_broker_that_answers_drop_by_drop_is_a_timeout(broker):
    broker.drips = True

    assert reply(broker, timeout=0.2) == TIMED_OUT


def test_a_broker_that_answers_too_much_has_no_proxies(broker):
    broker.body = b" " * 200_000 + broker.body

    assert reply(broker) == NO_PROXIES


def test_the_brokers_own_error_is_returned(broker):
    broker.body = b'{"error":"invalid NAT type"}'

    assert reply(broker) == '{"error":"invalid NAT type"}'


def test_an_offer_that_is_too_long_is_not_posted(broker):
    assert reply(broker, b"x" * 100_001) == '{"error":"100001 bytes are too many; at most 100000 are allowed"}'
    assert broker.offers == []
