"""A developer shares the queue of an ECS service: its tasks are replaced twice, and no message is lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.flows.consumer import LocalConsumer
from signalbox.queues import QueueName
from tests.integration.splitting.consumer_processes import (
    CLUSTER,
    ROLE,
    ConsumerProcesses,
    ContainerAgent,
    consumer_processes,
)
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

SERVICE = FAMILY = "demo-mailer"
ORDERS, AUDIT = QueueName("demo-orders-of-a-service"), QueueName("demo-audit")
MESSAGES = 10
END_SECONDS = 240
REGISTRY = {
    "apiVersion": "queues.mirrord.metalbear.co/v1alpha",
    "kind": "MirrordWorkloadQueueRegistry",
    "metadata": {"name": SERVICE},
    "spec": {
        "consumer": {"workloadType": "EcsService", "name": f"{CLUSTER}/{SERVICE}", "container": "app"},
        "queues": {"orders": {"queueType": "SQS", "nameSource": {"envVar": "QUEUE"}}},
    },
}


@pytest.fixture
def ecs(deployment: Deployment) -> Any:
    return deployment.session().client("ecs")


@pytest.fixture
def processes(deployment: Deployment, deployed: dict[str, Any], tmp_path: Path) -> Iterator[ConsumerProcesses]:
    with consumer_processes(deployment, deployed, tmp_path) as found:
        yield found


@pytest.fixture
def revision(deployment: Deployment, ecs: Any, processes: ConsumerProcesses) -> Iterator[str]:
    """The task definition of a service with two containers, whose variable has the same name; its tasks run."""
    sqs = deployment.session().client("sqs")
    for name in (ORDERS, AUDIT):
        sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "6"})
    role = deployment.session().client("iam").get_role(RoleName=ROLE)["Role"]["Arn"]
    containers = [
        {"name": name, "image": "mailer", "environment": [{"name": "QUEUE", "value": queue}]}
        for name, queue in {"app": ORDERS, "proxy": AUDIT}.items()
    ]
    ecs.create_cluster(clusterName=CLUSTER)
    definition = ecs.register_task_definition(family=FAMILY, taskRoleArn=role, containerDefinitions=containers)
    arn = definition["taskDefinition"]["taskDefinitionArn"]
    ecs.create_service(cluster=CLUSTER, serviceName=SERVICE, taskDefinition=arn, desiredCount=1)
    with ContainerAgent(ecs, SERVICE, processes).running():
        yield arn
    ecs.delete_service(cluster=CLUSTER, service=SERVICE, force=True)
    ecs.deregister_task_definition(taskDefinition=arn)


def test_a_session_shares_the_queue_of_a_service_until_it_ends(
    deployment: Deployment, ecs: Any, processes: ConsumerProcesses, revision: str
):
    users = Users(deployment, f"ecs/{CLUSTER}/{SERVICE}")
    users.apply(REGISTRY)

    with users.session("ann", {"orders": {"message_filter": {"author": "^ann$"}}}) as ann:
        reader = LocalConsumer(deployment.session(), [queue.url for queue in ann.queues])
        replacing = service(ecs)["taskDefinition"]
        during = variables(ecs, replacing)
        with reader.reading():
            for number in range(MESSAGES):
                send(deployment, "ann", "others", number=number)
            wait_for(lambda: len(received(reader)) == MESSAGES, "all messages of ann", seconds=END_SECONDS)
            wait_for(lambda: len(processes.received()) >= MESSAGES, "all messages of others", seconds=END_SECONDS)
    users.wait_until_over()
    send(deployment, "ann", number=0)
    wait_for(lambda: (ORDERS, "0 by ann") in processes.received(), "the original is read again", seconds=END_SECONDS)

    assert ann.environment == {"QUEUE": ann.queues[0].temporary}
    deployed = QueueName(during["app"]["QUEUE"])
    assert received(reader) == {f"{number} by ann" for number in range(MESSAGES)}
    assert set(processes.received()) == {(deployed, f"{number} by others") for number in range(MESSAGES)} | {
        (ORDERS, "0 by ann")
    }
    assert deployed not in (ORDERS, ann.queues[0].temporary)
    assert during["proxy"] == {"QUEUE": AUDIT}
    assert service(ecs)["taskDefinition"] == revision
    assert active_revisions(ecs) == [revision]
    assert users.temporary_queues() == []


def test_a_name_in_a_secret_is_refused_with_the_variable_the_container_and_the_remedy(
    deployment: Deployment, ecs: Any, revision: str
):
    users = Users(deployment, f"ecs/{CLUSTER}/{SERVICE}")
    users.apply(REGISTRY)
    secret = {"name": "QUEUE", "valueFrom": "arn:aws:ssm:us-east-1:000000000000:parameter/demo-orders"}
    hidden = ecs.register_task_definition(
        family=FAMILY, containerDefinitions=[{"name": "app", "image": "mailer", "secrets": [secret]}]
    )["taskDefinition"]["taskDefinitionArn"]
    ecs.update_service(cluster=CLUSTER, service=SERVICE, taskDefinition=hidden)

    refusal = users.refusal("ann", {"orders": {"message_filter": {"author": "^ann$"}}})

    ecs.update_service(cluster=CLUSTER, service=SERVICE, taskDefinition=revision)
    ecs.deregister_task_definition(taskDefinition=hidden)
    assert "variable 'QUEUE' of container 'app' comes from a secret" in refusal
    assert "add the queue's name to `environment`" in refusal


def send(deployment: Deployment, *authors: str, number: int) -> None:
    sqs = deployment.session().client("sqs")
    url = sqs.get_queue_url(QueueName=ORDERS)["QueueUrl"]
    for author in authors:
        attributes = {"author": {"DataType": "String", "StringValue": author}}
        sqs.send_message(QueueUrl=url, MessageBody=f"{number} by {author}", MessageAttributes=attributes)


def received(reader: LocalConsumer) -> set[str]:
    """Return the texts that a user has received; a standard queue may repeat one."""
    return {one.body for one in reader.received}


def service(ecs: Any) -> Any:
    return ecs.describe_services(cluster=CLUSTER, services=[SERVICE])["services"][0]


def variables(ecs: Any, arn: str) -> dict[str, dict[str, str]]:
    """Return the variables of each container of a revision."""
    containers = ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]["containerDefinitions"]
    return {one["name"]: {entry["name"]: entry["value"] for entry in one["environment"]} for one in containers}


def active_revisions(ecs: Any) -> list[str]:
    return list(ecs.list_task_definitions(familyPrefix=FAMILY, status="ACTIVE")["taskDefinitionArns"])
