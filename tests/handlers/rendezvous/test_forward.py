"""The function `forward` of a front: offers are posted to an existing broker, whose replies go to their clients."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.rendezvous import forward, wiring
from lambdas.shared import instance
from signalbox.control import orphan_queues
from tests.fakes.snowflake_broker import ANSWER, NO_PROXIES, Broker, running_broker
from tests.handlers.environment import clear_caches
from tests.handlers.recorded_events import batch, client_id, message


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


def test_the_queue_of_a_client_is_deleted_at_the_end_of_its_lease(stage, broker, monkeypatch):
    monkeypatch.setenv("CLIENT_QUEUE_LEASE_SECONDS", "0")
    clear_caches(forward, wiring, instance)

    handled(message("c1"))

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
    monkeypatch.setattr(orphan_queues, "STRAY_AGE", timedelta(0))
    record = message("lost")
    handled(record)
    stage.sqs.create_queue(QueueName="snowflake-client-of-another-broker")

    assert forward.handler({"task": "strays"}, None) == {"deleted": 1}
    assert not stage.has_queue("lost")
    assert stage.has_queue("of-another-broker")
