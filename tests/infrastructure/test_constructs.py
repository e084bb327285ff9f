"""The constructs in an ordinary CDK app, which knows no setting and no stage."""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any, Unpack

import pytest
from aws_cdk import App, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from constructs import Construct

from stacks.capability import Properties
from stacks.constructs import Exchange, Issuer, Live, Rendezvous, Splitting
from stacks.settings.context import InvalidConfig
from tests.infrastructure.templates import Resource

Make = Callable[[Stack, Properties], Any]


def existing_function(stack: Stack, name: str = "Existing") -> lambda_.Function:
    code = lambda_.Code.from_inline("def handler(event, context): pass")
    return lambda_.Function(stack, name, code=code, handler="index.handler", runtime=lambda_.Runtime.PYTHON_3_13)


def an_exchange(stack: Stack, properties: Properties) -> Exchange:
    return Exchange(stack, "Bus", **properties)


def a_split(stack: Stack, properties: Properties) -> Splitting:
    consumer, queue = existing_function(stack), sqs.Queue(stack, "Orders")
    return Splitting(stack, "Split", consumers=[consumer], queues=[queue], **properties)


def a_broker(stack: Stack, properties: Properties) -> Rendezvous:
    return Rendezvous(stack, "Broker", **properties)


def a_live_bus(stack: Stack, properties: Properties) -> Live:
    return Live(stack, "Live", exchange=Exchange(stack, "Bus", ordered=True, **properties))


def template(tmp_path, make: Make, **properties: Unpack[Properties]) -> Resource:
    app = App(outdir=str(tmp_path), context={"aws:cdk:bundling-stacks": []}, builtin_cloud_formation_validation=False)
    make(Stack(app, "Shop"), properties)
    return app.synth().get_stack_by_name("Shop").template


def of_type(found: Resource, kind: str) -> dict[str, Resource]:
    return {name: one for name, one in found["Resources"].items() if one["Type"] == kind}


@pytest.mark.parametrize("make", [an_exchange, a_split, a_broker, a_live_bus])
def test_data_is_kept_unless_the_app_says_otherwise(make, tmp_path):
    kept = template(tmp_path / "kept", make)
    gone = template(tmp_path / "gone", make, removal_policy=RemovalPolicy.DESTROY)

    assert {one["DeletionPolicy"] for one in of_type(kept, "AWS::DynamoDB::Table").values()} == {"Retain"}
    assert {one["DeletionPolicy"] for one in of_type(gone, "AWS::DynamoDB::Table").values()} == {"Delete"}


@pytest.mark.parametrize(("make", "most"), [(an_exchange, 42), (a_split, 40), (a_broker, 70), (a_live_bus, 102)])
def test_with_a_key_and_alarms_of_the_app_a_part_is_small(make, most, tmp_path):
    def with_own(stack: Stack, _: Properties) -> None:
        make(stack, {"encryption_key": kms.Key(stack, "Own"), "add_alarms": False})

    found = template(tmp_path, with_own)

    kinds = Counter(one["Type"] for one in found["Resources"].values())
    assert kinds["AWS::KMS::Key"] == 1
    assert "AWS::CloudWatch::Alarm" not in kinds
    assert sum(kinds.values()) <= most


def test_alarms_notify_the_topic_of_the_app_and_roles_have_its_boundary(tmp_path):
    def with_own(stack: Stack, _: Properties) -> None:
        statement = iam.PolicyStatement(not_actions=["iam:*"], resources=["*"])
        boundary = iam.ManagedPolicy(stack, "Boundary", statements=[statement])
        an_exchange(stack, {"alarm_topic": sns.Topic(stack, "Alarms"), "permissions_boundary": boundary})

    found = template(tmp_path, with_own)

    (topic,) = of_type(found, "AWS::SNS::Topic")
    notified = [one["Properties"]["AlarmActions"] for one in of_type(found, "AWS::CloudWatch::Alarm").values()]
    assert notified
    assert notified == [[{"Ref": topic}]] * len(notified)
    assert all("PermissionsBoundary" in one["Properties"] for one in of_type(found, "AWS::IAM::Role").values())


def allowed(found: Resource, beginning: str) -> dict[str, list[Any]]:
    """Return the resources by action that the policies of a role allow."""
    policies = [one for name, one in of_type(found, "AWS::IAM::Policy").items() if name.startswith(beginning)]
    statements = [one for policy in policies for one in policy["Properties"]["PolicyDocument"]["Statement"]]
    found_actions: dict[str, list[Any]] = {}
    for one in statements:
        actions = one["Action"] if isinstance(one["Action"], list) else [one["Action"]]
        for action in actions:
            resources = one["Resource"] if isinstance(one["Resource"], list) else [one["Resource"]]
            found_actions.setdefault(action, []).extend(resources)
    return found_actions


def test_a_function_of_the_app_may_publish_to_the_exchange_and_nothing_else(tmp_path):
    def publishing(stack: Stack, properties: Properties) -> None:
        an_exchange(stack, properties).grant_publish(existing_function(stack, "Publisher"))

    may = allowed(template(tmp_path, publishing), "Publisher")

    assert set(may) == {"sqs:SendMessage", "sqs:GetQueueUrl", "kms:Decrypt", "kms:GenerateDataKey"}
    assert [str(one).count("-xbus'") for one in may["sqs:SendMessage"]] == [1]


def test_the_router_may_send_to_a_bound_queue_with_its_key_and_control_may_only_look_at_it(tmp_path):
    def bound(stack: Stack, properties: Properties) -> None:
        queue = sqs.Queue(stack, "Orders", encryption_master_key=kms.Key(stack, "Own"))
        bus = an_exchange(stack, properties)
        bus.bind(queue, "orders.#")
        bus.bind(queue, "returns.#")

    found = template(tmp_path, bound)
    (queue,) = (name for name in of_type(found, "AWS::SQS::Queue") if name.startswith("Orders"))
    (key,) = (name for name in of_type(found, "AWS::KMS::Key") if name.startswith("Own"))
    (declared,) = of_type(found, "Custom::SignalboxExchange").values()

    def actions(role: str, of: str) -> list[str]:
        arn = {"Fn::GetAtt": [of, "Arn"]}
        return [action for action, resources in allowed(found, role).items() for one in resources if one == arn]

    assert actions("BusExchangeRoute", queue) == ["sqs:SendMessage"]
    assert actions("BusExchangeControl", queue) == ["sqs:GetQueueAttributes"]
    assert sorted(actions("BusExchangeRoute", key)) == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert actions("BusExchangeControl", key) == []
    assert [str(declared).count(pattern) for pattern in ("orders.#", "returns.#")] == [1, 1]
    policies = {name for name in of_type(found, "AWS::IAM::Policy") if name.startswith("BusExchange")}
    assert policies <= set(declared["DependsOn"])


def test_users_and_issuers_of_a_log_are_declared_with_the_exchange(tmp_path):
    def a_log(stack: Stack, properties: Properties) -> None:
        bus = Exchange(stack, "Bus", ordered=True, **properties)
        issuer: Issuer = {"url": "https://id.example.org", "audience": "shop"}
        Live(stack, "Live", exchange=bus, issuers=[issuer], anonymous="guest").add_user("guest")

    found = template(tmp_path, a_log)

    (users,) = of_type(found, "Custom::SignalboxUsers").items()
    (declared,) = of_type(found, "Custom::SignalboxExchange").values()
    assert json.loads(users[1]["Properties"]["Declaration"]) == {"guest": "subscriber"}
    assert users[0] in declared["DependsOn"]
    assert json.loads(declared["Properties"]["Declaration"]) == {
        "exchange": "xbus.fifo",
        "live": {
            "live": True,
            "issuers": [{"url": "https://id.example.org", "audience": "shop"}],
            "anonymous": "guest",
        },
        "bindings": [],
        "keeps": True,
    }


def test_an_exchange_without_order_cannot_be_live(tmp_path):
    with pytest.raises(ValueError, match="ordered=True"):
        template(tmp_path, lambda stack, properties: Live(stack, "Live", exchange=an_exchange(stack, properties)))


def test_the_queues_of_a_consumer_of_the_app_are_found_with_their_keys_and_dead_letters(tmp_path):
    def found_by_itself(stack: Stack, properties: Properties) -> None:
        dead = sqs.Queue(stack, "Dead")
        redrive = sqs.DeadLetterQueue(queue=dead, max_receive_count=3)
        queue = sqs.Queue(stack, "Orders", encryption_master_key=kms.Key(stack, "Own"), dead_letter_queue=redrive)
        consumer = existing_function(stack)
        consumer.add_event_source(SqsEventSource(queue))
        Splitting(stack, "Split", consumers=[consumer], **properties)

    def imported(stack: Stack, properties: Properties) -> None:
        consumer = lambda_.Function.from_function_name(stack, "Elsewhere", "elsewhere")
        Splitting(stack, "Split", consumers=[consumer], **properties)

    may = allowed(template(tmp_path / "found", found_by_itself), "SplitSplittingControl")

    assert [str(may[action]).count(name) for action, name in OF_ORIGINALS] == [1] * len(OF_ORIGINALS)
    with pytest.raises(ValueError, match="give Splitting its `queues`"):
        template(tmp_path / "imported", imported)


OF_ORIGINALS = [("sqs:GetQueueUrl", "Orders"), ("sqs:GetQueueAttributes", "Dead"), ("kms:Encrypt", "Own")]


def test_no_construct_reaches_the_queues_of_another_one_or_of_the_app(tmp_path):
    def with_all_twice(stack: Stack, _: Properties) -> None:
        for name in ("One", "Other"):
            scope = Construct(stack, name)
            for make in (an_exchange, a_split, a_broker):
                make(scope, {"add_alarms": False})
        sqs.Queue(stack, "xml-input")

    names: dict[str, set[str]] = {}
    app = App(outdir=str(tmp_path), context={"aws:cdk:bundling-stacks": []}, builtin_cloud_formation_validation=False)
    for stack in ("shop", "shopone", "ShopOfTheOtherTeamWithALongName"):
        with_all_twice(Stack(app, stack), {})
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
