"""The sweep of client queues deletes those whose lease has expired; tests/handlers/rendezvous has the others."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.queues import Lease, QueueName, QueueUrl
from tests.integration.rendezvous.peers import Parties

pytestmark = pytest.mark.emulator

LEASES = {"task": "leases"}


@pytest.fixture
def leases(parties: Parties) -> DynamoLeases:
    table = parties.deployment.outputs["LeaseTable"]
    return DynamoLeases(DynamoTable(parties.deployment.session().client("dynamodb"), table))


@pytest.fixture
def queue(parties: Parties) -> QueueUrl:
    """Return the queue of a client whose offer has ended long ago: no record of it is left."""
    name = f"{parties.deployment.outputs['ClientQueuePrefix']}{uuid4().hex}"
    return QueueUrl(parties.sqs.create_queue(QueueName=name)["QueueUrl"])


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
