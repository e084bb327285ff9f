"""ECS services switched to temporary queues and back, on moto, which runs no tasks: tests set the deployments."""

from dataclasses import replace
from datetime import timedelta

import boto3
import pytest
from moto.ecs.models import ecs_backends

from signalbox.aws.splitting.targets.ecs import EcsTargets, UnsuitableService
from signalbox.aws.splitting.targets.original_queues import NotSplittable, OriginalQueues
from signalbox.aws.splitting.targets.task_definition import AmbiguousVariable
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import QueueElsewhere, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Split, SplitQueue, Stage
from signalbox.splitting.model.target import Target
from tests.adapters.shared import stubs
from tests.adapters.shared.stubs import StubbedClient, error
from tests.fakes.aws import REGION
from tests.fakes.rendezvous import START
from tests.unit.splitting.consumers.registries import HOME
from tests.unit.splitting.forwarding.languages import PlainLanguages

ACCOUNT = "123456789012"
TARGET = Target.parse("ecs/main/worker")
ORDERS, DEPLOYED, SESSION = QueueName("orders"), QueueName("mirrord-tmp-x-fallback-orders"), QueueName("mirrord-tmp-y")
URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"
VARIABLE = NameSource(SourceKind.VARIABLE, "QUEUE")
PLAIN = {"QUEUE": URL + ORDERS, "LEVEL": "info"}


def registry(*sources: NameSource) -> Registry:
    return Registry(TARGET, (RegisteredQueue(QueueId("orders"), sources or (VARIABLE,), {"team": "a"}),))


def split(stage: Stage = Stage.STARTING) -> Split:
    queue = SplitQueue(QueueId("orders"), ORDERS, DEPLOYED, timedelta(seconds=45))
    return Split(TARGET, (queue,), (), stage, START, timedelta(seconds=120))


class Service:
    """A service with one or more containers; `rolled_out` sets the state of its deployments."""

    def __init__(self, ecs) -> None:
        self.ecs = ecs

    def deploy(self, *containers: dict[str, object], **settings: object) -> str:
        self.ecs.create_cluster(clusterName="main")
        arn = self.register(*containers)
        self.ecs.create_service(
            cluster="main", serviceName="worker", taskDefinition=arn, **{"desiredCount": 1, **settings}
        )
        self.tell([(arn, 1, "COMPLETED")])
        return arn

    def register(self, *containers: dict[str, object]) -> str:
        answer = self.ecs.register_task_definition(
            family="worker",
            containerDefinitions=list(containers) or [container("app", PLAIN)],
            taskRoleArn=f"arn:aws:iam::{ACCOUNT}:role/worker",
            networkMode="awsvpc",
            requiresCompatibilities=["FARGATE"],
            cpu="256",
            memory="512",
            volumes=[{"name": "scratch", "host": {}}],
            tags=[{"key": "team", "value": "a"}],
        )
        return answer["taskDefinition"]["taskDefinitionArn"]

    def redeploy(self, arn: str) -> None:
        self.ecs.update_service(cluster="main", service="worker", taskDefinition=arn)

    def tell(self, deployments: list[tuple[str, int, str]]) -> None:
        """Set the service's deployments, newest first: revision, number of tasks and rollout state."""
        stored = ecs_backends[ACCOUNT][REGION].services["main:worker"]
        first = stored.deployments[0]
        stored.deployments = [
            {**first, "taskDefinition": arn, "runningCount": count, "pendingCount": 0, "rolloutState": state}
            | {"status": "ACTIVE" if number else "PRIMARY"}
            for number, (arn, count, state) in enumerate(deployments)
        ]

    def roll_out(self) -> None:
        self.tell([(self.revision, 1, "COMPLETED")])

    @property
    def revision(self) -> str:
        return self.ecs.describe_services(cluster="main", services=["worker"])["services"][0]["taskDefinition"]

    def described(self, arn: str) -> dict[str, object]:
        answer = self.ecs.describe_task_definition(taskDefinition=arn, include=["TAGS"])
        ours = ("taskDefinitionArn", "revision", "registeredAt")
        return {name: value for name, value in answer["taskDefinition"].items() if name not in ours} | {
            "tags": {tag["key"]: tag["value"] for tag in answer.get("tags", [])}
        }

    def variables(self, arn: str, number: int = 0) -> dict[str, str]:
        found = self.described(arn)["containerDefinitions"][number]["environment"]
        return {entry["name"]: entry["value"] for entry in found}


def container(name: str, variables: dict[str, str] | None = None, **settings: object) -> dict[str, object]:
    environment = [{"name": key, "value": value} for key, value in (variables or {}).items()]
    return {"name": name, "image": "worker:1", "essential": True, "environment": environment, **settings}


@pytest.fixture
def ecs(aws: None):
    return boto3.client("ecs")


@pytest.fixture
def service(ecs) -> Service:
    return Service(ecs)


@pytest.fixture
def targets(ecs, sqs) -> EcsTargets:
    sqs.create_queue(QueueName=ORDERS, Attributes={"VisibilityTimeout": "45"})
    return EcsTargets(ecs, OriginalQueues(sqs), Resolver(PlainLanguages(), HOME))


def test_a_service_has_the_queues_of_its_variables(targets: EcsTargets, service: Service) -> None:
    service.deploy()

    (found,) = targets.find(registry())

    assert (found.queue_id, found.original, found.visibility, found.tags) == (
        "orders",
        ORDERS,
        timedelta(seconds=45),
        (("team", "a"),),
    )


def test_variables_are_found_by_a_pattern_for_their_names(targets: EcsTargets, service: Service) -> None:
    service.deploy()

    (found,) = targets.find(registry(NameSource(SourceKind.VARIABLES_LIKE, "^QUE")))

    assert found.original == ORDERS


def test_only_the_variables_of_the_containers_in_the_registry_count(targets: EcsTargets, service: Service) -> None:
    service.deploy(container("proxy", {"QUEUE": ORDERS}), container("app", PLAIN))

    (found,) = targets.find(registry(replace(VARIABLE, containers=("app",))))

    assert found.original == ORDERS


def test_containers_with_different_values_of_a_variable_are_refused(targets: EcsTargets, service: Service) -> None:
    service.deploy(container("proxy", {"QUEUE": ORDERS}), container("app", PLAIN))

    with pytest.raises(AmbiguousVariable, match="'QUEUE' of container 'app'"):
        targets.find(registry())


A_SECRET = (
    "^variable 'QUEUE' of container 'app' comes from a secret, which is not read: add the queue's name to "
    "`environment` of the container and remove it from `secrets`, or let the program read an SSM parameter at "
    "run time and split that one, as ssm/NAME$"
)
A_FILE = (
    "^variable 'QUEUE' is not in `environment` of container 'app', which takes others from files in S3 "
    r"\(`environmentFiles`\), which are not read: add the queue's name to `environment`, which counts more "
    "than a file, or name another container in the registry$"
)


@pytest.mark.parametrize(
    ("containers", "source", "says"),
    [
        ([container("app")], VARIABLE, "no variable 'QUEUE'"),
        ([container("app", PLAIN)], replace(VARIABLE, containers=("web",)), "has no container web; it has app"),
        (
            [container("app", secrets=[{"name": "QUEUE", "valueFrom": "arn:x"}])],
            replace(VARIABLE, fallback="orders"),
            A_SECRET,
        ),
        (
            [container("app", environmentFiles=[{"type": "s3", "value": "arn:aws:s3:::b/e.env"}])],
            VARIABLE,
            A_FILE,
        ),
    ],
    ids=["no variable", "no container", "a secret", "a file"],
)
def test_a_variable_without_a_queue_name_is_named_in_the_error(
    targets: EcsTargets, service: Service, containers, source: NameSource, says: str
) -> None:
    service.deploy(*containers)

    with pytest.raises(UnresolvedQueue, match=says):
        targets.find(registry(source))


@pytest.mark.parametrize("more", [{}, {"environmentFiles": [{"type": "s3", "value": "arn:aws:s3:::b/e.env"}]}])
def test_a_queue_without_its_variable_does_not_block_the_others(targets: EcsTargets, service: Service, more) -> None:
    service.deploy(container("app", PLAIN, **more))
    absent = RegisteredQueue(QueueId("optional"), (NameSource(SourceKind.VARIABLE, "ABSENT"),))
    both = registry()
    both = replace(both, queues=(absent, *both.queues))

    assert [one.original for one in targets.find(both)] == [ORDERS]
    other = NameSource(SourceKind.VARIABLE, "ABSENT", fallback="arn:aws:sqs:a:1:x")
    with pytest.raises(UnresolvedQueue, match=r"of account 1 in region a|from files in S3"):
        targets.find(replace(both, queues=(replace(absent, sources=(other,)), *both.queues)))


def test_a_variable_with_a_queue_of_another_region_is_refused(targets: EcsTargets, service: Service) -> None:
    service.deploy(container("app", {"QUEUE": f"https://sqs.eu-west-1.amazonaws.com/123456789012/{ORDERS}"}))

    with pytest.raises(QueueElsewhere, match="'QUEUE' names a queue of account 123456789012 in region eu-west-1"):
        targets.find(registry())


@pytest.mark.parametrize("pattern", [None, "^(h.*)", "^(x.*)", "^(.{3})", "(:.*)"])
@pytest.mark.parametrize("value", ["hunter2", "h:unter2"])
def test_a_registry_does_not_read_variables_that_name_no_queue(
    targets: EcsTargets, service: Service, value: str, pattern: str | None
) -> None:
    service.deploy(container("app", {"PASSWORD": value}))

    with pytest.raises(UnresolvedQueue) as refusal:
        targets.find(registry(NameSource(SourceKind.VARIABLE, "PASSWORD", pattern=pattern)))

    assert str(refusal.value) == (
        "queue 'orders': the target's value names no queue that this stage may split; it must exist in this account "
        "and region and be in the setting splittable_queues"
    )


@pytest.mark.parametrize("other", ["ABSENT", "SECRET", "ELSEWHERE"])
def test_the_error_of_a_second_source_does_not_disclose_what_the_first_finds_in_a_value(
    targets: EcsTargets, service: Service, other: str
) -> None:
    """Otherwise each attempt would disclose one bit of a password."""
    variables = {"PASSWORD": "hunter2", "ELSEWHERE": f"https://sqs.eu-west-1.amazonaws.com/271828182845/{ORDERS}"}
    service.deploy(container("app", variables, secrets=[{"name": "SECRET", "valueFrom": "arn:x"}]))
    second = NameSource(SourceKind.VARIABLE, other)

    refusals = []
    for pattern in ("^(h.*)", "^(x.*)"):
        queue = registry(NameSource(SourceKind.VARIABLE, "PASSWORD", pattern=pattern)).queues[0]
        queue = replace(queue, sources=(*queue.sources, second))
        with pytest.raises(UnresolvedQueue) as refusal:
            targets.find(replace(registry(), queues=(queue,)))
        refusals.append(str(refusal.value))

    assert refusals[0] == refusals[1]


@pytest.mark.parametrize("controller", ["CODE_DEPLOY", "EXTERNAL"])
def test_a_service_with_another_deployment_controller_is_refused(
    targets: EcsTargets, service: Service, controller: str
) -> None:
    service.deploy()
    ecs_backends[ACCOUNT][REGION].services["main:worker"].deployment_controller = {"type": controller}

    with pytest.raises(UnsuitableService, match=f"its deployment controller is {controller}"):
        targets.find(registry())
    with pytest.raises(EffectRefused, match=controller):
        targets.switch(split(), registry())


def test_an_unknown_service_is_refused(targets: EcsTargets, service: Service, ecs) -> None:
    with pytest.raises(UnsuitableService, match="no such ECS service"):
        targets.find(registry())
    ecs.create_cluster(clusterName="main")
    with pytest.raises(UnsuitableService, match="ecs/main/worker"):
        targets.find(registry())


def test_an_unknown_service_or_cluster_is_gone(targets: EcsTargets, service: Service, ecs) -> None:
    assert targets.observe(split(), registry()) is TargetState.GONE
    service.deploy()
    ecs.delete_service(cluster="main", service="worker", force=True)
    assert targets.observe(split(), registry()) is TargetState.GONE


def test_a_switch_registers_a_revision_that_differs_only_in_the_queue(targets: EcsTargets, service: Service) -> None:
    before = service.deploy(container("proxy"), container("app", PLAIN, command=["run"]))

    targets.switch(split(), registry(replace(VARIABLE, containers=("app",))))

    expected = service.described(before)
    expected["containerDefinitions"][1]["environment"][0]["value"] = URL + DEPLOYED
    expected["tags"] |= {"signalbox:replaces": before, "signalbox:target": "ecs/main/worker"}
    assert service.revision != before
    assert service.described(service.revision) == expected


def test_a_switch_counts_when_the_deployment_is_complete_and_no_older_task_runs(
    targets: EcsTargets, service: Service
) -> None:
    before = service.deploy()
    states = [targets.observe(split(), registry())]

    targets.switch(split(), registry())
    for deployments in (
        [(service.revision, 0, "IN_PROGRESS"), (before, 1, "COMPLETED")],
        [(service.revision, 1, "IN_PROGRESS"), (before, 0, "COMPLETED")],
        [(service.revision, 1, "COMPLETED"), (before, 1, "COMPLETED")],
        [(service.revision, 1, "COMPLETED")],
    ):
        service.tell(deployments)
        states.append(targets.observe(split(), registry()))

    assert states == [
        TargetState.ORIGINAL,
        TargetState.CHANGING,
        TargetState.CHANGING,
        TargetState.CHANGING,
        TargetState.TEMPORARY,
    ]


def test_a_service_scaled_to_zero_is_ready_at_once(targets: EcsTargets, service: Service) -> None:
    """mirrord 3.187: a target without instances made every start of a session time out."""
    before = service.deploy(desiredCount=0)
    service.tell([(before, 0, "COMPLETED")])

    targets.switch(split(), registry())
    service.tell([(service.revision, 0, "IN_PROGRESS")])

    assert targets.observe(split(), registry()) is TargetState.TEMPORARY


def test_a_deployment_that_never_completes_can_be_undone(targets: EcsTargets, service: Service) -> None:
    before = service.deploy()
    targets.switch(split(), registry())
    service.tell([(service.revision, 0, "FAILED"), (before, 1, "COMPLETED")])
    assert targets.observe(split(), registry()) is TargetState.CHANGING
    assert targets.observe(split(Stage.RESTORING), registry()) is TargetState.TEMPORARY

    targets.switch_back(split(Stage.RESTORING), registry())

    assert service.revision == before


def test_a_deployment_that_ecs_rolled_back_is_switched_again(targets: EcsTargets, service: Service) -> None:
    before = service.deploy()
    targets.switch(split(), registry())
    ours = service.revision
    service.redeploy(before)  # what the deployment circuit breaker does
    assert targets.observe(split(), registry()) is TargetState.ORIGINAL

    targets.switch(split(), registry())

    assert service.revision == ours


def test_the_switch_back_restores_the_old_revision_and_deregisters_the_new_one(
    targets: EcsTargets, service: Service
) -> None:
    before = service.deploy()
    targets.switch(split(), registry())
    ours = service.revision
    service.roll_out()

    targets.switch_back(split(Stage.RESTORING), registry())

    assert service.revision == before
    assert service.described(ours)["status"] == "INACTIVE"


def test_the_switch_back_is_complete_when_no_task_reads_a_temporary_queue(
    targets: EcsTargets, service: Service
) -> None:
    before = service.deploy()
    targets.switch(split(), registry())
    ours = service.revision
    targets.switch_back(split(Stage.RESTORING), registry())

    service.tell([(before, 1, "IN_PROGRESS"), (ours, 1, "COMPLETED")])
    early = targets.observe(split(Stage.RESTORING), registry())
    service.tell([(before, 1, "IN_PROGRESS"), (ours, 0, "COMPLETED")])
    late = targets.observe(split(Stage.RESTORING), registry())

    assert (early, late) == (TargetState.CHANGING, TargetState.ORIGINAL)


def test_a_revision_of_an_earlier_split_is_deregistered(targets: EcsTargets, service: Service) -> None:
    before = service.deploy()
    targets.switch(split(), registry())
    left = service.revision
    service.redeploy(before)
    other = replace(split(), queues=(replace(split().queues[0], deployed=QueueName("mirrord-tmp-z")),))

    targets.switch(other, registry())

    assert service.described(left)["status"] == "INACTIVE"
    assert service.variables(service.revision)["QUEUE"] == URL + "mirrord-tmp-z"


def test_a_redeployed_service_is_switched_again_and_restored_to_its_new_revision(
    targets: EcsTargets, service: Service
) -> None:
    service.deploy()
    targets.switch(split(), registry())
    service.roll_out()
    anew = service.register(container("app", PLAIN | {"LEVEL": "debug"}))
    service.redeploy(anew)
    assert targets.observe(split(Stage.SPLIT), registry()) is TargetState.ORIGINAL

    targets.switch(split(Stage.SPLIT), registry())
    assert service.variables(service.revision) == {"QUEUE": URL + DEPLOYED, "LEVEL": "debug"}
    targets.switch_back(split(Stage.RESTORING), registry())

    assert service.revision == anew


def test_a_copy_of_a_switched_revision_is_switched_back_by_its_names(targets: EcsTargets, service: Service) -> None:
    """For example a script that takes a family's newest revision and replaces the image."""
    service.deploy()
    targets.switch(split(), registry())
    service.redeploy(service.register(container("app", {"QUEUE": URL + DEPLOYED})))
    assert targets.observe(split(Stage.RESTORING), registry()) is TargetState.TEMPORARY
    with pytest.raises(UnresolvedQueue, match="was changed and reads other queues than those of its split"):
        targets.environment(registry(), {ORDERS: SESSION})

    targets.switch_back(split(Stage.RESTORING), registry())

    assert service.variables(service.revision) == {"QUEUE": URL + ORDERS}


HOSTILE = [{"image": "stranger:1"}, {"environment": [{"name": "QUEUE", "value": URL + "theirs"}]}]
HOSTILE += [{"environment": [{"name": name, "value": value} for name, value in (PLAIN | {"LEVEL": "debug"}).items()]}]
HOSTILE += [{"environment": []}]


@pytest.mark.parametrize("changed", HOSTILE)
def test_whoever_may_tag_revisions_does_not_choose_what_the_service_runs(
    targets: EcsTargets, service: Service, ecs, changed: dict[str, object]
) -> None:
    before = service.deploy()
    hostile = service.register(container("app", PLAIN) | changed)
    targets.switch(split(), registry())
    ours = service.revision
    ecs.tag_resource(resourceArn=ours, tags=[{"key": "signalbox:replaces", "value": hostile}])

    targets.switch_back(split(Stage.RESTORING), registry())

    assert service.revision not in (hostile, ours)
    assert service.described(service.revision) == service.described(before)


def test_a_hostile_revision_is_not_taken_for_one_of_an_interrupted_switch(
    targets: EcsTargets, service: Service, ecs
) -> None:
    before = service.deploy()
    hostile = service.register(container("app", PLAIN | {"QUEUE": URL + DEPLOYED}) | {"image": "stranger:1"})
    tags = {"signalbox:replaces": before, "signalbox:target": str(TARGET)}
    ecs.tag_resource(resourceArn=hostile, tags=[{"key": key, "value": value} for key, value in tags.items()])

    targets.switch(split(), registry())

    assert service.described(service.revision)["containerDefinitions"][0]["image"] == "worker:1"


def test_an_inactive_old_revision_is_registered_again(targets: EcsTargets, service: Service, ecs) -> None:
    before = service.deploy()
    targets.switch(split(), registry())
    ecs.deregister_task_definition(taskDefinition=before)

    targets.switch_back(split(Stage.RESTORING), registry())

    assert service.revision != before
    assert service.variables(service.revision) == PLAIN
    assert service.described(service.revision)["tags"] == {"team": "a"}


def test_a_revision_without_tags_is_copied_without_tags(targets: EcsTargets, service: Service, ecs) -> None:
    before = service.deploy()
    ecs.untag_resource(resourceArn=before, tagKeys=["team"])
    targets.switch(split(), registry())
    ecs.deregister_task_definition(taskDefinition=before)

    targets.switch_back(split(Stage.RESTORING), registry())

    assert service.variables(service.revision) == PLAIN
    assert service.described(service.revision)["tags"] == {}


def test_a_service_that_no_longer_reads_the_queue_is_not_switched(targets: EcsTargets, service: Service) -> None:
    service.deploy()
    service.redeploy(service.register(container("app", {"QUEUE": "bills"})))

    with pytest.raises(EffectRefused, match="no longer reads the queues"):
        targets.switch(split(), registry())


def test_a_service_without_the_variable_reads_no_temporary_queue(targets: EcsTargets, service: Service) -> None:
    service.deploy()
    service.redeploy(service.register(container("app")))

    assert targets.observe(split(Stage.SPLIT), registry()) is TargetState.ORIGINAL
    with pytest.raises(EffectRefused, match="no variable 'QUEUE'"):
        targets.switch(split(Stage.SPLIT), registry())


def test_a_local_command_receives_the_old_value_with_the_sessions_queue(targets: EcsTargets, service: Service) -> None:
    service.deploy()
    targets.switch(split(), registry())

    assert targets.environment(registry(), {ORDERS: SESSION}) == {"QUEUE": URL + SESSION}


def test_whoever_may_tag_revisions_does_not_have_the_variables_of_others_read(
    targets: EcsTargets, service: Service, ecs
) -> None:
    service.deploy()
    targets.switch(split(), registry())
    theirs = container("app", {"QUEUE": ORDERS}, memory=8)
    others = ecs.register_task_definition(family="other", containerDefinitions=[theirs])
    forged = others["taskDefinition"]["taskDefinitionArn"]
    ecs.tag_resource(resourceArn=service.revision, tags=[{"key": "signalbox:replaces", "value": forged}])

    with pytest.raises(UnresolvedQueue, match="was changed and reads other queues than those of its split"):
        targets.environment(registry(), {ORDERS: SESSION})


class WithoutActiveRevision:
    """An ECS client that finds no family, as when all of its revisions are inactive."""

    def __init__(self, ecs) -> None:
        self.ecs = ecs

    def __getattr__(self, name: str):
        return getattr(self.ecs, name)

    def describe_task_definition(self, *, taskDefinition: str, include: list[str]) -> object:  # noqa: N803
        if not taskDefinition.startswith("arn:"):
            raise self.ecs.exceptions.ClientException({"Error": {"Code": "ClientException"}}, "DescribeTaskDefinition")
        return self.ecs.describe_task_definition(taskDefinition=taskDefinition, include=include)


def test_a_service_whose_revisions_are_all_inactive_is_switched(targets: EcsTargets, service: Service) -> None:
    service.deploy()

    replace(targets, ecs=WithoutActiveRevision(targets.ecs)).switch(split(), registry())

    assert service.variables(service.revision)["QUEUE"] == URL + DEPLOYED


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("AccessDeniedException", 400, EffectRefused),
        ("ThrottlingException", 400, EffectFailed),
        ("ServerException", 500, EffectFailed),
    ],
)
def test_a_refusal_has_the_aws_code_and_the_services_name(
    targets: EcsTargets, service: Service, code: str, status: int, expected: type[Exception]
) -> None:
    service.deploy()
    refused = replace(targets, ecs=StubbedClient(targets.ecs, "update_service", error(code, status=status)))

    with pytest.raises(expected, match=rf"{code}.*ecs/main/worker|ecs/main/worker.*{code}"):
        refused.switch(split(), registry())


def test_a_refused_observation_is_a_temporary_failure(targets: EcsTargets) -> None:
    refused = replace(targets, ecs=StubbedClient(targets.ecs, "describe_services", error("AccessDeniedException")))

    with pytest.raises(EffectFailed, match="AccessDeniedException"):
        refused.observe(split(), registry())


@pytest.mark.parametrize(
    ("code", "expected"), [("AccessDeniedException", NotSplittable), ("ThrottlingException", EffectFailed)]
)
def test_an_original_whose_attributes_are_refused_may_not_be_split(sqs, code: str, expected: type[Exception]) -> None:
    sqs.create_queue(QueueName=ORDERS)
    refused = OriginalQueues(StubbedClient(sqs, "get_queue_attributes", stubs.error(code)))

    with pytest.raises(expected, match="queue 'orders'"):
        refused.found(registry(), lambda _: [ORDERS])
