"""The function `forward` of a front: offers are posted to an existing broker, whose replies go to their clients."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from lambdas.rendezvous import forward, wiring
from lambdas.shared import instance
from signalbox.control import orphan_queues
from tests.fakes.snowflake_broker import ANSWER, NO_PROXIES, Broker, running_broker
from tests.handlers.environment import clear_caches
from tests.handlers.recorded_events import batch, client_id, message
from tests.handlers.rendezvous.ledger import ledger

KEPT_FOR = 150  # seconds, by the settings of tests/handlers/conftest.py


@pytest.fixture
def broker(stage, monkeypatch) -> Iterator[Broker]:
    with running_broker() as broker:
        monkeypatch.setenv("BROKER_URL", broker.url)
        clear_caches(forward, wiring, instance)
        yield broker
    clear_caches(forward, wiring, instance)


def handled(*records: dict[str, Any]) -> list[str]:
    """Return the ids of the messages that stay in flight."""
    done = forward.handler(batch(*records), None)
    return [failure["itemIdentifier"] for failure in done["batchItemFailures"]]


def again(record: dict[str, Any], *, age_seconds: float) -> dict[str, Any]:
    """Return a later delivery of the same message."""
    sent = str(round((time.time() - age_seconds) * 1000))
    return record | {"attributes": record["attributes"] | {"ApproximateReceiveCount": "2", "SentTimestamp": sent}}


def test_an_offer_is_posted_as_it_is_and_the_brokers_reply_goes_to_its_client(stage, broker):
    record = message()

    assert handled(record) == [record["messageId"]]
    assert broker.offers == [("/broker/client", record["body"].encode())]
    assert stage.replies(client_id(record)) == [ANSWER]


def test_an_offer_whose_reply_was_sent_is_not_posted_again(stage, broker):
    record = message()
    handled(record)

    assert handled(again(record, age_seconds=20)) == [record["messageId"]]
    assert stage.replies(client_id(record)) == [ANSWER]


# Of the function, by operation; the calls of Lambda and of the client are not among them.
CALLS = {"CreateQueue": 1, "SendMessage": 1, "ChangeMessageVisibilityBatch": 1, "GetQueueAttributes": 1}
CALLS |= {"DeleteQueue": 1}


def test_a_rendezvous_makes_these_calls_and_leaves_no_queue(stage, broker):
    record = stage.received(message("c1"))
    with ledger() as kept, kept.of("forward"):
        assert handled(record) == [record["messageId"]]
        assert stage.in_flight() == 1
        clear_caches(forward, wiring, instance)  # another instance
        assert handled(again(record, age_seconds=KEPT_FOR)) == []

    made = {operation: number for (_, operation, _), (number, _) in kept.by_kind().items()}
    assert made == CALLS | {"GetQueueAttributes": 2}  # one is that of this test
    assert not stage.has_queue("c1")


def test_a_queue_of_others_outlives_an_offer_with_its_name(stage, broker):
    stage.sqs.create_queue(QueueName="snowflake-client-of-another-broker")

    assert handled(again(message("of-another-broker"), age_seconds=KEPT_FOR)) == []
    assert stage.has_queue("of-another-broker")


def test_an_offer_whose_function_was_killed_before_it_sent_the_reply_is_posted_again(stage, broker):
    record = message()
    forward._service().client_queues.create(client_id(record), message_id=record["messageId"])

    handled(again(record, age_seconds=20))

    assert stage.replies(client_id(record)) == [ANSWER]


def test_an_absent_broker_gives_clients_the_error_for_no_proxies(stage, broker, monkeypatch):
    monkeypatch.setenv("BROKER_URL", "http://127.0.0.1:1")
    clear_caches(instance)
    record = message()

    handled(record)

    assert stage.replies(client_id(record)) == [NO_PROXIES]


def test_a_message_without_a_client_id_is_a_dead_letter(stage, broker):
    assert handled(message("")) == []
    assert [attributes["Reason"] for _, attributes in stage.dead_letters()] == ["ClientID is empty"]
    assert stage.history() == [("dead_letter", "dead")]


def test_the_schedule_deletes_the_queues_of_offers_that_have_expired(stage, broker, monkeypatch):
    monkeypatch.setattr(orphan_queues, "STRAY_AGE", timedelta(0))
    record = message("lost")
    handled(record)
    stage.sqs.create_queue(QueueName="snowflake-client-of-another-broker")

    assert forward.handler({"task": "strays"}, None) == {"deleted": 1}
    assert not stage.has_queue("lost")
    assert stage.has_queue("of-another-broker")
