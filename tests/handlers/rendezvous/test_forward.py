"""The function `forward` of a front: offers are posted to an existing broker, whose replies go to their clients."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.rendezvous import forward, wiring
from lambdas.shared import instance
from tests.fakes.snowflake_broker import ANSWER, NO_PROXIES, Broker, running_broker
from tests.handlers.environment import clear_caches
from tests.handlers.recorded_events import batch, client_id, message
from tests.handlers.rendezvous.ledger import ledger


@pytest.fixture
def broker(stage, monkeypatch) -> Iterator[Broker]:
    with running_broker() as broker:
        monkeypatch.setenv("BROKER_URL", broker.url)
        clear_caches(forward, wiring, instance)
        yield broker
    clear_caches(forward, wiring, instance)


def handled(*records: dict[str, Any]) -> list[str]:
    """Return the ids of the messages that come again."""
    done = forward.handler(batch(*records), None)
    return [failure["itemIdentifier"] for failure in done["batchItemFailures"]]


def again(record: dict[str, Any], *, age_seconds: float) -> dict[str, Any]:
    """Return a later delivery of the same message."""
    sent = str(round((time.time() - age_seconds) * 1000))
    return record | {"attributes": record["attributes"] | {"ApproximateReceiveCount": "2", "SentTimestamp": sent}}


def test_an_offer_is_posted_as_it_is_and_the_brokers_reply_goes_to_its_client(stage, broker):
    record = message()

    assert handled(record) == []
    assert broker.offers == [("/broker/client", record["body"].encode())]
    assert stage.replies(client_id(record)) == [ANSWER]


def test_an_offer_whose_reply_was_sent_is_not_posted_again(stage, broker):
    record = message()
    handled(record)

    assert handled(again(record, age_seconds=20)) == []
    assert stage.replies(client_id(record)) == [ANSWER]


# Of the function, by operation; the calls of Lambda and of the client are not among them.
CALLS = {"CreateQueue": 1, "SendMessage": 1, "DeleteQueue": 1}


def test_a_rendezvous_makes_these_calls_and_leaves_no_queue_at_the_end_of_its_lease(stage, broker, monkeypatch):
    monkeypatch.setenv("CLIENT_QUEUE_LEASE_SECONDS", "0")
    clear_caches(forward, wiring, instance)

    with ledger() as kept, kept.of("forward"):
        handled(message("c1"))

    assert {operation: number for (_, operation, _), (number, _) in kept.by_kind().items()} == CALLS
    assert not stage.has_queue("c1")


def test_a_queue_that_cannot_be_deleted_does_not_bring_answered_offers_again(stage, broker, monkeypatch, caplog):
    monkeypatch.setenv("CLIENT_QUEUE_LEASE_SECONDS", "0")
    clear_caches(forward, wiring, instance)
    instance.sqs().meta.events.register("before-call.sqs.DeleteQueue", _refuse)

    assert handled(message("c1"), message("c2")) == []
    assert stage.has_queue("c1")
    assert "left to the sweep" in caplog.text


def _refuse(**_: object) -> None:
    raise ClientError({"Error": {"Code": "ThrottlingException"}}, "DeleteQueue")


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


def test_the_schedule_deletes_the_queues_of_instances_that_have_ended(stage, broker, monkeypatch):
    lost = [f"lost{n}" for n in range(30)]
    for client in lost:
        handled(message(client))
    stage.sqs.create_queue(QueueName="snowflake-client-of-another-broker")

    monkeypatch.setenv("STRAY_QUEUE_AGE_SECONDS", "600")
    clear_caches(forward, wiring, instance)
    assert forward.handler({"task": "strays"}, None) == {"deleted": 0}
    monkeypatch.setenv("STRAY_QUEUE_AGE_SECONDS", "-5")
    clear_caches(forward, wiring, instance)
    with ledger() as kept, kept.of("forward"):
        assert forward.handler({"task": "strays"}, None) == {"deleted": 30}

    calls = {operation: number for (_, operation, _), (number, _) in kept.by_kind().items()}
    assert calls == {"ListQueues": 1, "GetQueueAttributes": 31, "DeleteQueue": 30}
    assert not any(map(stage.has_queue, lost))
    assert stage.has_queue("of-another-broker")
