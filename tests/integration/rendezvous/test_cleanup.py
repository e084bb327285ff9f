"""The sweep of client queues: expired leases, strays, and queues with similar names."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from signalbox.aws.shared.dynamodb import milliseconds
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.states import offer_pool
from signalbox.rendezvous.wire.nat import Nat
from tests.integration.rendezvous.peers import DENIED, Parties, wait_for

pytestmark = pytest.mark.emulator

LEASES, STRAYS = {"task": "leases"}, {"task": "strays"}


@pytest.fixture
def leases(parties: Parties) -> DynamoLeases:
    table = parties.deployment.outputs["LeaseTable"]
    return DynamoLeases(parties.deployment.session().resource("dynamodb").Table(table))


@pytest.fixture
def queue(parties: Parties) -> QueueUrl:
    """Return the queue of a client whose offer was denied for lack of a proxy."""
    asked = parties.ask(Nat.RESTRICTED)
    assert parties.reply(asked.client_id) == DENIED
    return QueueUrl(str(parties.client_queue(asked.client_id)))


def name_of(queue: str) -> QueueName:
    return QueueName(queue.rpartition("/")[2])


def exists(parties: Parties, queue: str) -> bool:
    return queue in parties.sqs.list_queues(QueueNamePrefix=name_of(queue)).get("QueueUrls", [])


def forget_offer(parties: Parties, queue: QueueUrl) -> None:
    """Delete the record of the offer of a client queue, as DynamoDB does when it has expired."""
    client_id = name_of(queue).removeprefix(parties.deployment.outputs["ClientQueuePrefix"])
    record = parties.record(client_id)
    assert record is not None
    sent = f"{milliseconds(record.created_at):013}"
    parties.table.delete_item(Key={"pk": offer_pool(record.nat), "sk": f"{sent}#{client_id}"})


@contextmanager
def strays_of_any_age(parties: Parties) -> Iterator[None]:
    """Set the minimum age of strays to zero, since a test is too short for ten minutes."""
    lambda_ = parties.deployment.session().client("lambda")
    name = parties.deployment.outputs["SweepFunctionName"]
    before = lambda_.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    lambda_.update_function_configuration(
        FunctionName=name, Environment={"Variables": before | {"STRAY_QUEUE_AGE_SECONDS": "0"}}
    )
    try:
        yield
    finally:
        lambda_.update_function_configuration(FunctionName=name, Environment={"Variables": before})


def test_a_client_queue_is_deleted_when_its_lease_has_expired(parties: Parties, leases: DynamoLeases, queue: QueueUrl):
    parties.invoke("SweepFunctionName", LEASES)
    assert exists(parties, queue)

    leases.put(Lease(name_of(queue), queue, "rendezvous", due_at=datetime.now(UTC)))
    parties.invoke("SweepFunctionName", LEASES)

    assert not exists(parties, queue)
    assert not leases.leased([name_of(queue)])


def test_a_client_queue_that_no_sweep_deleted_is_deleted_as_a_stray(parties: Parties, queue: QueueUrl):
    parties.invoke("SweepFunctionName", STRAYS)
    assert exists(parties, queue), "it is too young to be a stray"

    with strays_of_any_age(parties):
        parties.invoke("SweepFunctionName", STRAYS)
        assert exists(parties, queue), "its lease has not ended"
        forget_offer(parties, queue)
        parties.invoke("SweepFunctionName", STRAYS)

    assert not exists(parties, queue)


def test_the_daily_sweep_recreates_a_deleted_broker_queue(parties: Parties):
    """On AWS, a queue's name is available again one minute after its deletion."""
    url = parties.deployment.outputs["BrokerQueueUrl"]
    before = _settings_of(parties, url)
    parties.sqs.delete_queue(QueueUrl=url)

    parties.invoke("SweepFunctionName", STRAYS)

    assert _settings_of(parties, url) == before
    asked = parties.ask(Nat.RESTRICTED)
    assert parties.reply(asked.client_id) == DENIED
    wait_for(lambda: parties.waiting_messages() == 0, "the offer deleted")


def _settings_of(parties: Parties, queue: str) -> dict[str, str]:
    """Return the attributes that a queue was created with."""
    attributes = parties.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    return {
        name: value
        for name, value in attributes.items()
        if not name.startswith("Approximate") and not name.endswith("Timestamp") and name != "Policy"
    }
