"""The constructs in an ordinary CDK app, which knows no setting and no stage."""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from aws_cdk import App, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs import DEFAULTS, Exchange, Live, Options, Rendezvous, Splitting
from stacks.settings.context import InvalidConfig
from tests.infrastructure.templates import Resource

Make = Callable[[Stack, Options], Any]


def existing_function(stack: Stack, name: str = "Existing") -> lambda_.Function:
    code = lambda_.Code.from_inline("def handler(event, context): pass")
    return lambda_.Function(stack, name, code=code, handler="index.handler", runtime=lambda_.Runtime.PYTHON_3_13)


def an_exchange(stack: Stack, options: Options) -> Exchange:
    return Exchange(stack, "Bus", options=options)


def a_split(stack: Stack, options: Options) -> Splitting:
    consumer, queue = existing_function(stack), sqs.Queue(stack, "Orders")
    return Splitting(stack, "Split", consumers=[consumer], queues=[queue], options=options)


def a_broker(stack: Stack, options: Options) -> Rendezvous:
    return Rendezvous(stack, "Broker", options=options)


def a_live_bus(stack: Stack, options: Options) -> Live:
    return Live(stack, "Live", exchange=an_exchange(stack, options))


def template(tmp_path, make: Make, options: Options = DEFAULTS) -> Resource:
    app = App(outdir=str(tmp_path), context={"aws:cdk:bundling-stacks": []}, builtin_cloud_formation_validation=False)
    make(Stack(app, "Shop"), options)
    return app.synth().get_stack_by_name("Shop").template


def of_type(found: Resource, kind: str) -> dict[str, Resource]:
    return {name: one for name, one in found["Resources"].items() if one["Type"] == kind}


@pytest.mark.parametrize("make", [an_exchange, a_split, a_broker, a_live_bus])
def test_data_is_kept_unless_the_app_says_otherwise(make, tmp_path):
    kept = template(tmp_path / "kept", make)
    gone = template(tmp_path / "gone", make, Options(removal_policy=RemovalPolicy.DESTROY))

    assert {one["DeletionPolicy"] for one in of_type(kept, "AWS::DynamoDB::Table").values()} == {"Retain"}
    assert {one["DeletionPolicy"] for one in of_type(gone, "AWS::DynamoDB::Table").values()} == {"Delete"}


@pytest.mark.parametrize(("make", "most"), [(an_exchange, 42), (a_split, 40), (a_broker, 70), (a_live_bus, 100)])
def test_with_a_key_and_alarms_of_the_app_a_part_is_small(make, most, tmp_path):
    def with_own(stack: Stack, _: Options) -> None:
        make(stack, Options(encryption_key=kms.Key(stack, "Own"), add_alarms=False))

    found = template(tmp_path, with_own)

    kinds = Counter(one["Type"] for one in found["Resources"].values())
    assert kinds["AWS::KMS::Key"] == 1
    assert "AWS::CloudWatch::Alarm" not in kinds
    assert sum(kinds.values()) <= most


def test_alarms_notify_the_topic_of_the_app_and_roles_have_its_boundary(tmp_path):
    def with_own(stack: Stack, _: Options) -> None:
        statement = iam.PolicyStatement(not_actions=["iam:*"], resources=["*"])
        boundary = iam.ManagedPolicy(stack, "Boundary", statements=[statement])
        an_exchange(stack, Options(alarm_topic=sns.Topic(stack, "Alarms"), permissions_boundary=boundary))

    found = template(tmp_path, with_own)

    (topic,) = of_type(found, "AWS::SNS::Topic")
    notified = [one["Properties"]["AlarmActions"] for one in of_type(found, "AWS::CloudWatch::Alarm").values()]
    assert notified
    assert notified == [[{"Ref": topic}]] * len(notified)
    assert all("PermissionsBoundary" in one["Properties"] for one in of_type(found, "AWS::IAM::Role").values())


def test_a_function_of_the_app_may_publish_and_nothing_else(tmp_path):
    def publishing(stack: Stack, options: Options) -> None:
        an_exchange(stack, options).grant_publish(existing_function(stack, "Publisher"))

    found = template(tmp_path, publishing)

    (policy,) = [one for name, one in of_type(found, "AWS::IAM::Policy").items() if name.startswith("Publisher")]
    allowed = {action for one in policy["Properties"]["PolicyDocument"]["Statement"] for action in one["Action"]}
    assert allowed == {"sqs:SendMessage", "sqs:GetQueueUrl", "kms:Decrypt", "kms:GenerateDataKey"}


def test_a_split_may_use_the_keys_of_its_queues_and_read_their_dead_letter_queues(tmp_path):
    def encrypted(stack: Stack, options: Options) -> None:
        key = kms.Key(stack, "Key")
        dead = sqs.Queue(stack, "Dead", encryption_master_key=key)
        of_dead = sqs.DeadLetterQueue(queue=dead, max_receive_count=3)
        queues = [sqs.Queue(stack, name, encryption_master_key=key, dead_letter_queue=of_dead) for name in "AB"]
        Splitting(stack, "Split", consumers=[existing_function(stack)], queues=queues, options=options)

    found = template(tmp_path, encrypted)

    (key,) = [name for name in of_type(found, "AWS::KMS::Key") if name.startswith("Key")]
    (dead,) = [name for name in of_type(found, "AWS::SQS::Queue") if name.startswith("Dead")]
    statements = [
        (name, json.dumps(statement))
        for name, policy in of_type(found, "AWS::IAM::Policy").items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    users = {name for name, text in statements if f'"{key}"' in text and "kms:Decrypt" in text}
    readers = {name for name, text in statements if f'"{dead}"' in text and "sqs:GetQueueAttributes" in text}
    assert [any(role in name for name in users) for role in ("SplitRole", "ControlRole")] == [True, True]
    assert [role in name for name in readers for role in ("ControlRole",)] == [True]


def test_no_construct_reaches_the_queues_of_another_one_or_of_the_app(tmp_path):
    def with_all_twice(stack: Stack, _: Options) -> None:
        for name in ("One", "Other"):
            scope = Construct(stack, name)
            for make in (an_exchange, a_split, a_broker):
                make(scope, Options(add_alarms=False))
        sqs.Queue(stack, "xml-input")

    names: dict[str, set[str]] = {}
    app = App(outdir=str(tmp_path), context={"aws:cdk:bundling-stacks": []}, builtin_cloud_formation_validation=False)
    for stack in ("shop", "shopone", "ShopOfTheOtherTeamWithALongName"):
        with_all_twice(Stack(app, stack), Options())
    for stack in app.synth().stacks:
        for logical, one in stack.template["Resources"].items():
            owner = next((part for part in PARTS if logical.startswith(part)), "app")
            names.setdefault(f"{stack.stack_name} {owner}", set()).update(queue_names(stack.stack_name, logical, one))

    assert len(names) == 3 * (len(PARTS) + 1)
    for (one, mine), (other, its) in permutations(names.items(), 2):
        reached = {(a, b) for a in mine for b in its if a.endswith("*") and b.startswith(a.rstrip("*"))}
        assert not reached, f"{one} reaches {other}"
    assert max(len(name) for found in names.values() for name in found) <= 80


PARTS = [f"{scope}{part}" for scope in ("One", "Other") for part in ("Bus", "Split", "Broker")]


def queue_names(stack: str, logical: str, found: Resource) -> set[str]:
    """Return the names of a queue, or the patterns of names in a policy."""
    if found["Type"] == "AWS::SQS::Queue":
        return {found.get("Properties", {}).get("QueueName", f"{stack}-{logical}-")}
    if found["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        statements = found["Properties"]["PolicyDocument"]["Statement"]
        of_sqs = [one for one in statements if "sqs:" in json.dumps(one["Action"])]
        return set(re.findall(r':([A-Za-z0-9_-]+\*)"', json.dumps([one["Resource"] for one in of_sqs])))
    return set()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda stack: Exchange(stack, "Bus", prefix="*"), "exchange_prefix must match"),
        (lambda stack: Rendezvous(stack, "Broker", client_queue_prefix=""), "client_queue_prefix must match"),
        (lambda stack: Rendezvous(stack, "Broker", broker_queue_name="a-broker", client_queue_prefix="a-"), "open the"),
        (
            lambda stack: Splitting(stack, "Split", consumers=[], queues=[], temporary_prefix=""),
            "temporary_queue_prefix must match",
        ),
    ],
)
def test_a_name_that_would_open_other_queues_is_refused(make, problem):
    with pytest.raises(InvalidConfig, match=problem):
        make(Stack(App(context={"aws:cdk:bundling-stacks": []}), "Shop"))
