"""The SQS calls for offers that come again; test_budget.py has the calls of one rendezvous."""

from collections import Counter
from typing import Any

import pytest

from lambdas.rendezvous import offer
from lambdas.shared import instance
from tests.handlers.recorded_events import batch, message


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


def test_the_offers_of_a_batch_that_come_again_are_hidden_in_one_call(stage, calls):
    stage.expect_proxies()
    records = [stage.received(message(f"client-{n}")) for n in range(10)]

    offer.handler(batch(*records), None)
    again = {"ApproximateReceiveCount": "2"}
    offer.handler(batch(*(record | {"attributes": record["attributes"] | again} for record in records)), None)

    (hidden,) = [parameters["Entries"] for name, parameters in calls if name == "ChangeMessageVisibilityBatch"]
    assert {entry["ReceiptHandle"] for entry in hidden} == {record["receiptHandle"] for record in records}
    assert {entry["VisibilityTimeout"] for entry in hidden} <= {9, 10}
