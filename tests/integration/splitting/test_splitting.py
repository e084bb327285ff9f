"""Several users share the queues of a deployed consumer: no message is lost, and everything is restored."""

from collections.abc import Iterator

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.flows.consumer import DeployedConsumer
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from tests.integration.splitting.sessions import Users
from tests.integration.splitting.users import Stage, Visits, prove_that_nothing_is_lost

pytestmark = pytest.mark.emulator

MEMES, ORDERS = QueueName("demo-memes-of-many"), QueueName("demo-orders.fifo")
CONSUMER = "demo-consumer-of-many"
# Of each kind, in the proof that nothing is lost.
EACH = 1_000
VISITS: Visits = {"alice": (0, 20), "bob": (4, 15), "carol": (8, 15)}


@pytest.fixture(scope="module")
def consumer(deployment: Deployment) -> DeployedConsumer:
    """A consumer of a standard and a FIFO queue."""
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    return DeployedConsumer.deploy(deployment.session(), CONSUMER, [MEMES, ORDERS], temporary_prefix=prefix)


@pytest.fixture(scope="module")
def stage(deployment: Deployment, consumer: DeployedConsumer) -> Stage:
    """The stage with the consumer, whose registry is applied."""
    stage = Stage(deployment, consumer)
    with stage.control() as control:
        assert control.ask("apply", {"documents": [consumer.registry()]}) == {"targets": [consumer.target]}
    return stage


@pytest.fixture(autouse=True)
def as_before(stage: Stage, consumer: DeployedConsumer) -> Iterator[None]:
    """Assert that everything is restored afterwards."""
    before = consumer.mappings()
    yield
    stage.wait_until_over()
    assert stage.temporary_queues() == []
    assert consumer.mappings() == before == {MEMES: "Enabled", ORDERS: "Enabled"}


def test_an_invalid_filter_is_refused_before_anything_is_created(stage: Stage):
    users = Users(stage.deployment, stage.consumer.target)

    assert "regular expression" in users.refusal("alice", {"*": {"message_filter": {"author": "("}}})
    assert stage.splits() == []


@pytest.mark.release
def test_nothing_is_lost_while_sessions_come_and_go_and_functions_are_killed(stage: Stage, stage_folder: StageFolder):
    prove_that_nothing_is_lost(stage, stage_folder, visits=VISITS, count=EACH)
