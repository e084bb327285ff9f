"""Deployments of ECS services take time, and the name of a family is its newest active revision."""

import time

import pytest

from signalbox.local.emulator.patches.service_deployments import completing_later, naming_active_revisions

DEFINITIONS = {
    f"mailer:{revision}": {"family": "mailer", "revision": revision, "status": status}
    for revision, status in ((1, "ACTIVE"), (2, "ACTIVE"), (3, "INACTIVE"))
} | {"gone:1": {"family": "gone", "revision": 1, "status": "INACTIVE"}}
ARN = "arn:aws:ecs:us-east-1:000000000000:task-definition/"


def test_a_deployment_is_completed_when_its_schedule_is_due():
    calls = []
    complete = completing_later(
        lambda *names, expected_deployment_id: calls.append(("complete", *names, expected_deployment_id)),
        lambda *names: calls.append(("schedule", *names)),
        lambda: "000000000000",
        lambda: "us-east-1",
    )

    complete("demo", "demo/mailer")
    complete("demo", "demo/mailer", expected_deployment_id="1")

    assert calls == [
        ("schedule", "demo", "demo/mailer", "000000000000", "us-east-1"),
        ("complete", "demo", "demo/mailer", "1"),
    ]


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ("mailer", "mailer:2"),
        (f"{ARN}mailer", "mailer:2"),
        (f"{ARN}mailer:3", "resolved"),
        ("mailer:1", "resolved"),
        ("gone", "gone"),
    ],
)
def test_a_family_is_its_newest_active_revision(reference, key):
    assert naming_active_revisions(lambda _: "resolved", DEFINITIONS)(reference) == key


@pytest.fixture(scope="module")
def ecs(running):
    return running.session().client("ecs")


def registered(ecs) -> str:
    containers = [{"name": "app", "image": "mailer"}]
    found = ecs.register_task_definition(family="mailer", containerDefinitions=containers)
    return found["taskDefinition"]["taskDefinitionArn"]


def deployments(ecs) -> dict[str, tuple[str, int]]:
    """Return the state and the number of running tasks of each deployment."""
    (service,) = ecs.describe_services(cluster="demo", services=["mailer"])["services"]
    return {one["taskDefinition"]: (one["rolloutState"], one["runningCount"]) for one in service["deployments"]}


@pytest.mark.emulator
@pytest.mark.release
def test_old_tasks_run_until_a_new_deployment_is_completed(ecs):
    ecs.create_cluster(clusterName="demo")
    old, new = registered(ecs), registered(ecs)
    ecs.create_service(cluster="demo", serviceName="mailer", taskDefinition=old, desiredCount=2)

    ecs.update_service(cluster="demo", service="mailer", taskDefinition=new)
    during = deployments(ecs)
    while old in deployments(ecs):
        time.sleep(0.1)

    assert during == {old: ("COMPLETED", 2), new: ("IN_PROGRESS", 2)}
    assert deployments(ecs) == {new: ("COMPLETED", 2)}
    ecs.deregister_task_definition(taskDefinition=old)
    assert ecs.describe_task_definition(taskDefinition="mailer")["taskDefinition"]["taskDefinitionArn"] == new
