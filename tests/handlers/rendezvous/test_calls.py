"""The SQS calls of the functions for one rendezvous: at most five, with those of the sweep."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lambdas.rendezvous import answer, offer, poll, sweep, wiring
from lambdas.shared import instance
from signalbox.queues import Lease, QueueName, QueueUrl
from tests.handlers.environment import Context
from tests.handlers.recorded_events import batch, event, message


@pytest.fixture
def calls(stage) -> list[tuple[str, dict[str, Any]]]:
    """The SQS calls of the functions from now on, with their parameters."""
    made: list[tuple[str, dict[str, Any]]] = []
    events = instance.sqs().meta.events
    events.register(
        "provide-client-params.sqs", lambda params, model, **_: made.append((str(model.name), dict(params)))
    )
    return made


def names(calls: list[tuple[str, dict[str, Any]]]) -> Counter[str]:
    return Counter(name for name, _ in calls)


def end_lease(client_id: str) -> None:
    name = QueueName(f"snowflake-client-{client_id}")
    url = QueueUrl(str(instance.sqs().get_queue_url(QueueName=name)["QueueUrl"]))
    over = datetime.now(UTC) - timedelta(seconds=1)
    sweep.leases().put(Lease(name, url, "rendezvous", due_at=over))


def test_an_offer_that_waits_for_the_next_poll_takes_five_calls(stage, calls):
    stage.expect_proxies()
    record = stage.received(message("client"))

    offer.handler(batch(record), None)
    assert '"client match"' in poll.handler(event("poll"), None)["body"]
    assert '"success"' in answer.handler(event("answer"), None)["body"]
    end_lease("client")
    assert sweep.handler(event("sweep_leases"), Context()) == {"deleted": 1}

    made = names(calls) - Counter(["GetQueueUrl"])  # the test's own
    assert made == dict.fromkeys(
        ("CreateQueue", "ChangeMessageVisibilityBatch", "SendMessage", "DeleteMessage", "DeleteQueue"), 1
    )


def test_an_offer_that_a_held_poll_gets_takes_four_calls(stage, calls, monkeypatch):
    monkeypatch.setenv("POLL_HOLD_SECONDS", "10")
    record = stage.received(message("client"))

    with ThreadPoolExecutor() as threads:
        held = threads.submit(poll.handler, event("poll"), None)
        while not wiring.poll_reserver().cache.held_polls.held(now=datetime.now(UTC)):
            assert not held.done()
        offer.handler(batch(record), None)
    assert '"client match"' in held.result()["body"]
    assert '"success"' in answer.handler(event("answer"), None)["body"]
    end_lease("client")
    assert sweep.handler(event("sweep_leases"), Context()) == {"deleted": 1}

    made = names(calls) - Counter(["GetQueueUrl"])  # the test's own
    assert made == dict.fromkeys(("CreateQueue", "SendMessage", "DeleteMessage", "DeleteQueue"), 1)


def test_the_parked_offers_of_a_batch_are_hidden_in_one_call(stage, calls):
    stage.expect_proxies()
    records = [stage.received(message(f"client-{n}")) for n in range(10)]

    offer.handler(batch(*records), None)

    (hidden,) = [parameters["Entries"] for name, parameters in calls if name == "ChangeMessageVisibilityBatch"]
    assert {entry["ReceiptHandle"] for entry in hidden} == {record["receiptHandle"] for record in records}
    assert {entry["VisibilityTimeout"] for entry in hidden} <= {9, 10}
