"""What strangers cost at the limits of the doors of rendezvous is what the threat model states."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lambdas.rendezvous import clients, offer, page, proxies, wiring
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import ProxyAnswer, answer_body
from tests.handlers.billed_calls import recorded_calls
from tests.handlers.recorded_events import batch, message, request
from tests.handlers.rendezvous.test_poll import POLL
from tests.handlers.strangers import Bill, billed, day, stated


@contextmanager
def collected(**more: float) -> Iterator[Bill]:
    """Yield the bill of a run that ends its instance, which writes what it has collected."""
    with billed(**more) as bill:
        yield bill
        wiring.flush()


def polls(_stage, number: int) -> Bill:
    forged = request("poll", body=json.dumps(POLL), headers={"x-forwarded-for": f"8.8.4.{number}"})
    with collected(milliseconds=25) as bill:
        proxies.handler(forged, None)
    return bill


def answers(_stage, _number: int) -> Bill:
    body = answer_body(ProxyAnswer("nobody", sample_answer(sample_offer("nobody"))))
    with collected(milliseconds=25) as bill:
        proxies.handler(request("answer", body=body), None)
    return bill


def http_offers(stage, _number: int) -> Bill:
    stage.expect_proxies()
    with collected(milliseconds=5_000) as bill:  # held for its patience
        clients.handler(request("client", body=offer_body(sample_offer("a"), "unrestricted")), None)
    return bill


def pages(_stage, _number: int) -> Bill:
    with collected(milliseconds=60) as bill:
        clients.handler(request("page", path="/prometheus"), None)
    return bill


def sqs_offers(stage, number: int) -> Bill:
    """The client sends, Lambda receives and deletes, and the queue of the client is created and deleted."""
    record = stage.received(message(f"client-{number}", body="junk"))
    with collected(milliseconds=35) as bill:
        offer.handler(batch(record), None)
    bill.units["SQS standard request"] += 5
    return bill


@pytest.mark.parametrize("receives", ["1", "2"], ids=["new", "received before"])
def test_an_offer_with_a_used_client_id_reads_no_offers_of_others(stage, receives: str) -> None:
    """It was sought among the newest 100 of each pool: 60 a second of the largest took all reads of a pool."""
    offer.handler(batch(stage.received(message("client-0", body="junk"))), None)
    again = stage.received(message("client-0", body="more junk"))
    again["attributes"]["ApproximateReceiveCount"] = receives

    with recorded_calls() as calls:
        offer.handler(batch(again), None)

    assert calls.count("dynamodb.Query") == 0
    assert stage.history()[-1] == ("offer", "duplicate")


def test_an_answer_without_an_offer_reads_a_bounded_number_of_offers(stage) -> None:
    """It was sought among all offers of the last half minute: eight a second took all reads of a busy pool."""
    for number in range(4):
        records = [stage.received(message(f"client-{number}-{n}", body="junk")) for n in range(10)]
        offer.handler(batch(*records), None)

    with recorded_calls() as calls:
        answers(stage, 1)

    assert calls.count("dynamodb.Query") == 3


def test_made_up_addresses_share_no_partition_key(stage, rendezvous_table) -> None:
    """The three items of each address had one key: 334 polls a second took more than its 1,000 writes."""
    for number in range(5):
        polls(stage, number)

    keys = Counter(item["pk"] for item in rendezvous_table.scan()["Items"] if item["pk"].startswith("distinct#"))
    assert (len(keys), max(keys.values())) == (15, 1)


@pytest.mark.parametrize(
    ("what", "act"),
    [
        ("polls with made-up addresses", polls),
        ("answers without an offer", answers),
        ("offers over HTTP", http_offers),
        ("offers over SQS, with the shared key", sqs_offers),
    ],
)
def test_strangers_cost_what_the_page_states(stage, what, act):
    """After a first call, in which an instance reads and writes what it keeps."""
    act(stage, 1)
    rate, usd = stated(what)

    assert day(act(stage, 2), rate) == usd


def test_a_page_of_the_broker_costs_strangers_no_more_than_one_of_live(stage, monkeypatch):
    """`tests/handlers/live/test_strangers.py` has the latter, which the page states."""
    monkeypatch.setattr(page, "KEPT_SECONDS", 10**10)
    pages(stage, 1)
    rate, usd = stated("pages")

    assert 0.8 * usd <= day(pages(stage, 2), rate) <= usd
