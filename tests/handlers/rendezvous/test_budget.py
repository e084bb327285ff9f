"""The AWS calls, write units and read units of one rendezvous, in a table: none of them comes back unnoticed."""

import json
import random
import string
from datetime import timedelta

import pytest

from lambdas.rendezvous import offer, proxies, sweep, wiring
from lambdas.shared import instance
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.history.prices import USAGES
from signalbox.rendezvous.wire.offer import offer_body
from tests.handlers.billed_calls import READS, WRITES
from tests.handlers.environment import Context
from tests.handlers.recorded_events import batch, event, message
from tests.handlers.rendezvous.ledger import Ledger, ledger

CLIENT = "0123456789abcdef"
OFFER = sample_offer("unrestricted")


@pytest.fixture
def rendezvous(stage, monkeypatch) -> Ledger:
    """The calls of a poll without an offer and of one rendezvous, with functions that have served others before."""
    # An instance shares its polls and writes its events once in ten seconds; a slow machine exceeds them.
    monkeypatch.setattr("lambdas.rendezvous.wiring.COLLECTED_FOR", timedelta(hours=1))
    monkeypatch.setattr("signalbox.rendezvous.rules.pacer.SHARED_EVERY", timedelta(hours=1))
    stage.expect_proxies()
    with ledger() as kept:
        serve(stage, kept, client="first")
        kept.calls.clear()
        with kept.of("unmatched poll"):
            proxies.handler(event("poll"), None)
        serve(stage, kept, client=CLIENT)
        return kept


def serve(stage, kept: Ledger, *, client: str) -> None:
    """Pass an offer to a poll and its answer to the client, and end the lease of the client's queue."""
    record = stage.received(message(client, body=offer_body(OFFER, "unrestricted")))
    with kept.of("offer"):
        offer.handler(batch(record), None)
    with kept.of("poll"):
        assert '"client match"' in proxies.handler(event("poll"), None)["body"]
    with kept.of("answer"):
        assert '"success"' in proxies.handler(event("answer"), None)["body"]
    assert stage.replies(client)
    stage.end_lease(client)
    wiring.flush()
    with kept.of("sweep"):
        assert sweep.handler(event("sweep_leases"), Context()) == {"deleted": 1}


# By function, operation and kind of item: the number of calls, and the write units of all of them.
OFFER_CALLS = {
    ("offer", "CreateQueue", ""): (1, 0),
    ("offer", "Query", "pace"): (1, 0),
    ("offer", "PutItem", "offer"): (1, 1),
}
POLL_CALLS = {
    ("poll", "Query", "offer"): (2, 0),  # an unrestricted proxy may serve the offers of both pools
    ("poll", "UpdateItem", "offer"): (1, 1),
}
ANSWER_CALLS = {
    ("answer", "Query", "offer"): (1, 0),  # the offers of clients that every proxy suits are sought first
    ("answer", "UpdateItem", "offer"): (1, 1),
    ("answer", "SendMessage", ""): (1, 0),
    ("answer", "DeleteMessage", ""): (1, 0),
}
SWEEP_CALLS = {("sweep", "DeleteQueue", ""): (1, 0)}
UNMATCHED_POLL_CALLS = {
    ("unmatched poll", "Query", "offer"): (2, 0),
}
# The calls of a run of the sweep, which up to a hundred queues share.
SHARED_CALLS = {
    ("sweep", "Query", "by_expiry"),
    ("sweep", "Query", "offer"),
    ("sweep", "PutItem", "lease"),
    ("sweep", "PutRecordBatch", ""),
    ("sweep", "GetItem", "lease"),
}


def test_a_rendezvous_makes_these_calls_and_writes_these_units(rendezvous):
    found = {kind: units for kind, units in rendezvous.by_kind().items() if kind not in SHARED_CALLS}

    assert found == OFFER_CALLS | POLL_CALLS | ANSWER_CALLS | SWEEP_CALLS | UNMATCHED_POLL_CALLS


def test_the_largest_offer_writes_four_units_of_its_pool_without_an_answer(stage, monkeypatch):
    """Of 1,000 a second. Each delivery wrote its record of four units: 50 such offers a second took all of a pool."""
    stage.expect_proxies()
    noise = "".join(random.Random(1).choices(string.ascii_letters + string.digits + "+/", k=1_480))  # noqa: S311
    body = offer_body(json.dumps({"type": "offer", "sdp": f"v=0{noise}"}), "unrestricted")
    record = stage.received(message("c" * 63, body=body))
    with ledger() as kept, kept.of("offer"):
        for number in (1, 2, 3):
            record["attributes"]["ApproximateReceiveCount"] = str(number)
            offer.handler(batch(record), None)
        end = instance.CLOCK.now() + wiring.policy().sqs_patience
        monkeypatch.setattr(instance.CLOCK, "now", lambda: end)
        offer.handler(batch(record), None)

    written = {kind: units for kind, units in kept.by_kind().items() if units[1] and "statistics" not in kind}
    assert written == {
        ("offer", "PutItem", "offer"): (1, 2),
        ("offer", "UpdateItem", "offer"): (1, 2),
        ("offer", "PutItem", "receipt"): (2, 2),
    }


def test_a_hundred_polls_share_a_record_of_history_and_a_write_of_each_counter(stage, monkeypatch):
    monkeypatch.setattr("lambdas.rendezvous.wiring.COLLECTED_FOR", timedelta(hours=1))
    proxies.handler(event("poll"), None)
    with ledger() as kept, kept.of("poll"):
        for _ in range(100):
            proxies.handler(event("poll"), None)

    assert kept.by_kind()["poll", "PutRecordBatch", ""] == (1, 0)
    assert kept.by_kind()["poll", "UpdateItem", "statistics"] == (1, 1)


@pytest.mark.parametrize(
    ("item", "what", "functions"),
    [
        (WRITES, "answer", ("offer", "poll", "answer")),
        (WRITES, "poll", ("unmatched poll",)),
        (READS, "poll", ("unmatched poll",)),
    ],
)
def test_the_cost_report_has_the_counted_units(rendezvous, item: str, what: str, functions: tuple[str, ...]):
    (priced,) = (one for one in USAGES if (one.capability, one.what, one.item) == ("rendezvous", what, item))

    counted = [call for call in rendezvous.calls if call.function in functions]

    assert priced.least <= sum(call.writes if item == WRITES else call.reads for call in counted) <= priced.most
