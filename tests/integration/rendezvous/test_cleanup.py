"""The sweep of client queues deletes those whose lease has expired; tests/handlers/rendezvous has the others."""

from datetime import UTC, datetime

import pytest

from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.wire.nat import Nat
from tests.integration.rendezvous.peers import DENIED, Parties

pytestmark = pytest.mark.emulator

LEASES = {"task": "leases"}


@pytest.fixture
def leases(parties: Parties) -> DynamoLeases:
    table = parties.deployment.outputs["LeaseTable"]
    return DynamoLeases(DynamoTable(parties.deployment.session().client("dynamodb"), table))


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


def test_a_client_queue_is_deleted_when_its_lease_has_expired(parties: Parties, leases: DynamoLeases, queue: QueueUrl):
    parties.invoke("SweepFunctionName", LEASES)
    assert exists(parties, queue)

    leases.put(Lease(name_of(queue), queue, "rendezvous", due_at=datetime.now(UTC)))
    parties.invoke("SweepFunctionName", LEASES)

    assert not exists(parties, queue)
    assert queue not in [lease.queue_url for lease in leases.due("rendezvous", now=datetime.now(UTC))]
