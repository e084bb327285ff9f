"""The AWS calls, write units and read units of one rendezvous, in a table: none of them comes back unnoticed."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from glue_jobs.transforms.prices import USAGES
from lambdas.rendezvous import answer, offer, poll, sweep, wiring
from signalbox.aws.shared.dynamodb import milliseconds
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.rendezvous.wire.offer import offer_body
from tests.handlers.billed_calls import WRITES
from tests.handlers.environment import Context
from tests.handlers.recorded_events import batch, event, message
from tests.handlers.rendezvous.ledger import Ledger, ledger

CLIENT = "0123456789abcdef"
OFFER = sample_offer("unrestricted")
POLL_SECONDS = 0.01


@pytest.fixture
def rendezvous(stage, monkeypatch) -> Ledger:
    """The calls of one rendezvous through a held poll, with functions that have served another one before."""
    monkeypatch.setenv("POLL_HOLD_SECONDS", "10")
    # One partition of the pools, as by default, and no slot that is held by another poll.
    monkeypatch.setenv("OFFER_POOL_SHARDS", "1")
    # An instance writes this once in some seconds, however many polls it serves; a slow machine exceeds them.
    monkeypatch.setattr("signalbox.aws.rendezvous.held_polls.NOTED_EVERY", timedelta(hours=1))
    with ledger() as kept:
        serve(stage, kept, client="first")
        kept.calls.clear()
        serve(stage, kept, client=CLIENT)
        # A poll is reserved before the offer is stored, and repeats its claim until then: often on a slow machine.
        kept.calls = [call for call in kept.calls if not (call.has_failed and call.kind == CLAIM)]
        return kept


def serve(stage, kept: Ledger, *, client: str) -> None:
    """Pass an offer to a held poll and its answer to the client, and end the lease of the client's queue."""
    record = stage.received(message(client, body=offer_body(OFFER, "unrestricted")))
    with ThreadPoolExecutor() as threads:
        held = threads.submit(kept.in_thread, "poll", poll.handler, event("poll"), None)
        # It is held, and has looked for offers in vain: it reads its slot.
        begun = kept.calls_of(TICK)
        while kept.calls_of(TICK) == begun:
            assert not held.done()
            time.sleep(POLL_SECONDS)
        with kept.of("offer"):
            offer.handler(batch(record), None)
    assert '"client match"' in held.result()["body"]
    with kept.of("answer"):
        assert '"success"' in answer.handler(event("answer"), None)["body"]
    assert stage.replies(client)
    end_lease(client)
    with kept.of("sweep"):
        assert sweep.handler(event("sweep_leases"), Context()) == {"deleted": 1}


def end_lease(client: str) -> None:
    """Let the lease of an answered client end now."""
    key = {"pk": f"offer#{client}", "sk": "offer"}
    wiring.table().update_item(
        Key=key,
        UpdateExpression="SET available_at = :now",
        ExpressionAttributeValues={":now": milliseconds(datetime.now(UTC))},
    )


# By function, operation and kind of item: the number of calls, and the write units of all of them.
OFFER_CALLS = {
    ("offer", "CreateQueue", ""): (1, 0),
    ("offer", "Query", "held"): (1, 0),
    ("offer", "UpdateItem", "held"): (1, 1),
    ("offer", "PutItem", "offer"): (1, 2),
    ("offer", "PutRecordBatch", ""): (1, 0),
}
POLL_CALLS = {
    ("poll", "PutItem", "held"): (1, 1),
    ("poll", "Query", "open_offers"): (2, 0),  # an unrestricted proxy may serve the offers of both pools
    ("poll", "UpdateItem", "offer"): (1, 2),
    ("poll", "PutItem", "proxy"): (1, 1),
    ("poll", "PutRecordBatch", ""): (1, 0),
    ("poll", "UpdateItem", "statistics"): (1, 1),
}
ANSWER_CALLS = {
    ("answer", "GetItem", "proxy"): (1, 0),
    ("answer", "UpdateItem", "offer"): (1, 3),
    ("answer", "SendMessage", ""): (1, 0),
    ("answer", "DeleteMessage", ""): (1, 0),
    ("answer", "PutRecordBatch", ""): (1, 0),
    ("answer", "UpdateItem", "statistics"): (1, 1),
}
SWEEP_CALLS = {("sweep", "DeleteQueue", ""): (1, 0)}
# The calls of a run of the sweep, which up to a hundred queues share.
SHARED_CALLS = {
    ("sweep", "Query", "by_expiry"),
    ("sweep", "Query", "open_offers"),
    ("sweep", "PutItem", "sweep"),
    ("sweep", "PutRecordBatch", ""),
    ("sweep", "GetItem", "sweep"),
}
TICK = ("poll", "GetItem", "held")
CLAIM = ("poll", "UpdateItem", "offer")


def test_a_rendezvous_makes_these_calls_and_writes_these_units(rendezvous):
    found = {kind: units for kind, units in rendezvous.by_kind().items() if kind not in SHARED_CALLS}
    ticks, _ = found.pop(TICK)

    assert found == OFFER_CALLS | POLL_CALLS | ANSWER_CALLS | SWEEP_CALLS
    assert ticks >= 1


def test_a_rendezvous_writes_the_units_of_the_cost_report(rendezvous):
    (priced,) = (one for one in USAGES if (one.capability, one.what, one.item) == ("rendezvous", "answer", WRITES))

    writes = sum(call.writes for call in rendezvous.calls if call.kind not in SHARED_CALLS)

    assert writes == priced.least == priced.most


def test_a_held_poll_reads_half_a_unit_each_time(rendezvous):
    """Source: DynamoDB's read units; an eventually consistent read costs half of a consistent one."""
    assert {call.reads for call in rendezvous.calls if call.kind == TICK} == {0.5}
