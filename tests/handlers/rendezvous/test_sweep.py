"""The function `sweep`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.rendezvous import offer
from lambdas.rendezvous.sweep import handler, leases
from lambdas.shared import instance
from signalbox.errors import EffectFailed
from signalbox.queues import Lease, QueueName, QueueUrl
from tests.handlers.environment import Context
from tests.handlers.recorded_events import batch, event, message


@pytest.fixture
def client_queue(stage) -> str:
    """The queue of a client, created for its offer."""
    stage.expect_proxies()
    offer.handler(batch(message("client")), None)
    return str(stage.sqs.get_queue_url(QueueName="snowflake-client-client")["QueueUrl"])


@pytest.fixture
def stray_queue(stage, client_queue) -> str:
    """The queue of a client whose offer has no record any more."""
    stage.forget_offer("client")
    return client_queue


def test_the_queue_of_a_client_is_deleted_at_the_end_of_its_lease(stage, stray_queue):
    assert handler(event("sweep_leases"), Context()) == {"deleted": 0}

    name = QueueName("snowflake-client-client")
    over = datetime.now(UTC) - timedelta(seconds=1)
    leases().put(Lease(name, QueueUrl(stray_queue), "rendezvous", due_at=over))

    assert handler(event("sweep_leases"), Context()) == {"deleted": 1}
    assert handler(event("sweep_leases"), Context()) == {"deleted": 0}
    assert not stage.has_queue("client")
    assert stage.history()[-1] == ("queue", "deleted")


def test_a_queue_of_this_stage_without_a_lease_is_deleted_at_its_age(stage, stray_queue, monkeypatch):
    monkeypatch.setenv("STRAY_QUEUE_AGE_SECONDS", "600")
    assert handler(event("sweep_strays"), Context()) == {"deleted": 0}

    monkeypatch.setenv("STRAY_QUEUE_AGE_SECONDS", "0")

    assert handler(event("sweep_strays"), Context()) == {"deleted": 1}
    assert not stage.has_queue("client")
    assert stage.history()[-1] == ("queue", "stray_deleted")


def test_queues_without_the_tags_of_this_stage_are_never_deleted(stage, sqs):
    sqs.create_queue(QueueName="snowflake-client-untagged")
    sqs.create_queue(
        QueueName="snowflake-client-theirs", tags={"signalbox:stage": "other", "signalbox:capability": "rendezvous"}
    )
    sqs.create_queue(
        QueueName="my-snowflake-client-x", tags={"signalbox:stage": "signalbox", "signalbox:capability": "rendezvous"}
    )
    before = sqs.list_queues()["QueueUrls"]

    assert handler(event("sweep_strays"), Context()) == {"deleted": 0}
    assert sqs.list_queues()["QueueUrls"] == before


def test_a_queue_that_cannot_be_deleted_fails_the_run_after_the_others(stage, stray_queue):
    stage.expect_proxies()
    offer.handler(batch(message("other")), None)
    stage.forget_offer("other")
    over = datetime.now(UTC) - timedelta(seconds=1)
    urls = {name: f"{stray_queue.rpartition('-')[0]}-{name}" for name in ("client", "other")}
    for name, url in urls.items():
        leases().put(Lease(QueueName(f"snowflake-client-{name}"), QueueUrl(url), "rendezvous", due_at=over))
    refuse(instance.sqs(), stray_queue)

    with pytest.raises(EffectFailed, match="1 queues were not deleted; the first: AccessDenied"):
        handler(event("sweep_leases"), Context())

    assert not stage.has_queue("other")
    assert stage.history()[-1] == ("queue", "deleted")


def refuse(sqs: Any, queue_url: str) -> None:
    """Let every later deletion of a queue fail."""

    def refused(params: dict[str, Any], **_: object) -> None:
        if params["QueueUrl"] == queue_url:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteQueue")

    sqs.meta.events.register("provide-client-params.sqs.DeleteQueue", refused)


def test_a_deleted_broker_queue_is_created_again(stage, sqs):
    sqs.delete_queue(QueueUrl=stage.broker_queue_url)

    handler(event("sweep_strays"), Context())

    attributes = sqs.get_queue_attributes(QueueUrl=stage.broker_queue_url, AttributeNames=["All"])["Attributes"]
    assert attributes["VisibilityTimeout"] == "30"


def test_an_imported_broker_queue_is_not_created_again(stage, sqs, monkeypatch):
    monkeypatch.setenv("BROKER_QUEUE_ATTRIBUTES", "{}")
    sqs.delete_queue(QueueUrl=stage.broker_queue_url)

    handler(event("sweep_strays"), Context())

    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix="snowflake-broker")
