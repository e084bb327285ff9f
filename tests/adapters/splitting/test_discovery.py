"""Discovery of registries from functions and services on AWS."""

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.splitting.discovery import AwsDiscovery, NotDiscoverable
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.splitting.consumers.discovery import TargetIsSplit
from signalbox.splitting.model.target import Target
from tests.adapters.shared.stubs import StubbedClient, error, role
from tests.adapters.splitting.lambda_functions import ACCOUNT_PREFIX, NAME, ROLE, function, mapping, queue
from tests.unit.splitting.consumers.registries import HOME

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/"
FUNCTION, SERVICE = Target.parse(f"lambda/{NAME}"), Target.parse("ecs/main/memes")


def closed_roles(code: str) -> StubbedClient:
    """Return a client of IAM that denies access to roles."""
    return StubbedClient(boto3.client("iam"), "get_paginator", error(code))


@pytest.fixture
def discovery(aws: None) -> AwsDiscovery:
    return made(boto3.client("iam"))


def made(iam: object) -> AwsDiscovery:
    return AwsDiscovery(boto3.client("lambda"), boto3.client("ecs"), iam, HOME, "mirrord-")


def receiving(*queues: str) -> dict[str, object]:
    resources = [ACCOUNT_PREFIX + one for one in queues]
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": ["sqs:ReceiveMessage"], "Resource": resources}],
    }


def sources(documents: object) -> list[object]:
    return [queue["nameSource"] for one in documents for queue in one["spec"]["queues"].values()]


def test_mappings_and_variables_of_a_function_are_registered(discovery: AwsDiscovery) -> None:
    queue("memes")
    function(policy=receiving("memes", "orders"), ORDERS="orders", COLOUR="red")
    mapping()

    documents = discovery.discover(FUNCTION)

    assert sources(documents) == [{"eventSource": "memes", "envVar": "MEMES_QUEUE"}, {"envVar": "ORDERS"}]
    assert documents[0]["spec"]["consumer"] == {"name": NAME, "workloadType": "Lambda"}


def other_mappings(*sources: str) -> StubbedClient:
    """Return a client of Lambda whose functions have mappings of these sources."""
    page = {"Aliases": [], "EventSourceMappings": [*({"EventSourceArn": source} for source in sources), {}]}
    return StubbedClient(boto3.client("lambda"), "get_paginator", SimpleNamespace(paginate=lambda **_: [page]))


def test_mappings_of_other_sources_and_accounts_are_left_out(discovery: AwsDiscovery) -> None:
    function()
    stream = "arn:aws:dynamodb:us-east-1:123456789012:table/memes/stream/2026-01-01T00:00:00.000"
    functions = other_mappings(stream, ACCOUNT_PREFIX.replace("123", "321") + "memes", ACCOUNT_PREFIX + "orders")

    found = replace(discovery, functions=functions).discover(FUNCTION)

    assert sources(found) == [{"eventSource": "orders", "envVar": "ORDERS_QUEUE"}]


def test_mappings_of_streams_are_left_out(discovery: AwsDiscovery) -> None:
    boto3.client("kinesis").create_stream(StreamName="memes", ShardCount=1)
    function(ORDERS=URL + "orders", policy=receiving("orders"))
    boto3.client("lambda").create_event_source_mapping(
        EventSourceArn="arn:aws:kinesis:us-east-1:123456789012:stream/memes",
        FunctionName=NAME,
        StartingPosition="LATEST",
    )

    assert sources(discovery.discover(FUNCTION)) == [{"envVar": "ORDERS"}]


@pytest.mark.parametrize("target", [f"lambda/{NAME}", f"lambda/{NAME}:live"])
def test_mappings_of_an_alias_are_found(discovery: AwsDiscovery, target: str) -> None:
    queue("memes")
    function()
    client = boto3.client("lambda")
    client.publish_version(FunctionName=NAME)
    arn = client.create_alias(FunctionName=NAME, Name="live", FunctionVersion="1")["AliasArn"]
    mapping(to=arn)

    assert sources(discovery.discover(Target.parse(target))) == [{"eventSource": "memes", "envVar": "MEMES_QUEUE"}]


def test_a_split_function_is_refused(discovery: AwsDiscovery) -> None:
    queue("mirrord-tmp-1-fallback-memes")
    function()
    mapping("mirrord-tmp-1-fallback-memes")

    with pytest.raises(TargetIsSplit):
        discovery.discover(FUNCTION)


def test_discovery_works_without_access_to_roles(discovery: AwsDiscovery) -> None:
    function(ORDERS=URL + "orders")

    assert sources(made(closed_roles("AccessDenied")).discover(FUNCTION)) == [{"envVar": "ORDERS"}]


class Denying:
    """A client whose calls IAM denies."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        def deny(**_arguments: object) -> object:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, name)

        return deny


@pytest.mark.parametrize("target", [f"lambda/{NAME}", "ecs/main/worker"])
def test_a_target_that_the_stage_may_not_use_is_refused_with_the_setting(discovery: AwsDiscovery, target: str) -> None:
    denied = replace(discovery, functions=Denying(), ecs=Denying())

    with pytest.raises(EffectRefused, match="not in the setting splittable_targets: AccessDeniedException at"):
        denied.discover(Target.parse(target))


def test_throttled_reads_of_roles_are_unavailable(discovery: AwsDiscovery) -> None:
    function(ORDERS=URL + "orders")

    with pytest.raises(EffectFailed, match="Throttling"):
        made(closed_roles("Throttling")).discover(FUNCTION)


def test_attached_policies_count(discovery: AwsDiscovery) -> None:
    function(ORDERS="orders")
    iam = boto3.client("iam")
    policy = iam.create_policy(PolicyName="orders", PolicyDocument=json.dumps(receiving("orders")))
    iam.attach_role_policy(RoleName="meme-role", PolicyArn=policy["Policy"]["Arn"])

    assert sources(discovery.discover(FUNCTION)) == [{"envVar": "ORDERS"}]


def test_an_unknown_function_is_refused(discovery: AwsDiscovery) -> None:
    with pytest.raises(EffectRefused, match=r"ResourceNotFoundException.*meme-app"):
        discovery.discover(FUNCTION)


def test_a_parameter_cannot_be_discovered(discovery: AwsDiscovery) -> None:
    with pytest.raises(NotDiscoverable, match="does not consume queues itself"):
        discovery.discover(Target.parse("ssm/memes/queue"))


@pytest.mark.parametrize("has_role", [True, False])
def test_variables_of_a_services_containers_are_registered(discovery: AwsDiscovery, *, has_role: bool) -> None:
    ecs = boto3.client("ecs")
    ecs.create_cluster(clusterName="main")
    environment = [{"name": "QUEUE", "value": URL + "memes"}]
    containers = [
        {"name": "app", "image": "app", "memory": 64, "environment": environment},
        {"name": "proxy", "image": "proxy", "memory": 64},
    ]
    ecs.register_task_definition(
        family="memes",
        containerDefinitions=containers,
        **({"taskRoleArn": role(ROLE, policy=receiving("memes"))} if has_role else {}),
    )
    ecs.create_service(cluster="main", serviceName="memes", taskDefinition="memes", desiredCount=0)

    documents = discovery.discover(SERVICE)

    assert sources(documents) == [{"envVar": "QUEUE"}]
    assert documents[0]["spec"]["consumer"] == {"name": "main/memes", "workloadType": "EcsService", "container": "app"}


def test_an_unknown_service_is_refused(discovery: AwsDiscovery) -> None:
    boto3.client("ecs").create_cluster(clusterName="main")

    with pytest.raises(NotDiscoverable, match="there is no ecs/main/memes"):
        discovery.discover(SERVICE)
