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

from signalbox.errors import RejectedError
from signalbox.exchange.model.names import exchange_name_problem
from signalbox.exchange.model.patterns import Pattern
from signalbox.rendezvous.wire.bridges import parse_bridges
from signalbox.sarracenia.rights.names import parse_exchange_name, parse_user_name
from stacks.capability import Properties
from stacks.constructs import Exchange, Issuer, Live, Rendezvous, Splitting
from stacks.properties import require_bridges, require_exchange, require_pattern, require_user
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


@pytest.mark.parametrize(("make", "most"), [(an_exchange, 42), (a_split, 40), (a_broker, 60), (a_live_bus, 85)])
def test_a_part_is_small_and_has_one_key_or_that_of_the_app(make, most, tmp_path):
    def with_own(stack: Stack, _: Properties) -> None:
        make(stack, {"encryption_key": kms.Key(stack, "Own"), "add_alarms": False})

    whole, own = (
        Counter(one["Type"] for one in template(tmp_path / name, made)["Resources"].values())
        for name, made in (("whole", make), ("own", with_own))
    )

    assert whole["AWS::KMS::Key"] == own["AWS::KMS::Key"] == 1
    assert whole["AWS::CloudWatch::Alarm"] >= 3
    assert "AWS::CloudWatch::Alarm" not in own
    assert sum(whole.values()) <= most


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


def live_with(stack: Stack, **properties: Any) -> Live:
    return Live(stack, "Live", exchange=Exchange(stack, "Bus", ordered=True), **properties)


LINE = '{"displayName": "a", "webSocketAddress": "wss://a.example/", "fingerprint": "%s"}\n'


@pytest.mark.parametrize(
    "text",
    [
        *("", LINE % ("A" * 40), LINE % ("a" * 64), LINE % "A", LINE % ("A" * 40) + "{", "[]", "\n"),
        *('{"fingerprint": 1}', LINE % ("A" * 40) + '{"fingerprint": "%s", "url": "a"}' % ("B" * 40)),
    ],
)
def test_a_list_of_bridges_is_refused_exactly_if_the_functions_refuse_it(text: str, tmp_path):
    path = tmp_path / "bridges.jsonl"
    path.write_text(text)

    try:
        parse_bridges(text)
    except RejectedError:
        with pytest.raises(ValueError, match="bridges: line"):
            require_bridges(path)
    else:
        require_bridges(path)


def split_of(stack: Stack, **properties: Any) -> Splitting:
    given = {"consumers": [existing_function(stack)], "queues": [sqs.Queue(stack, "Orders")], **properties}
    return Splitting(stack, "Split", **given)


def bound_own(stack: Stack) -> None:
    bus = Exchange(stack, "Bus")
    bus.bind(bus.control_queue, "#")


def bound_of_another(stack: Stack) -> None:
    Exchange(stack, "Bus").bind(Exchange(stack, "Other").control_queue, "#")


def twice_live(stack: Stack) -> None:
    bus = Exchange(stack, "Bus", ordered=True)
    for name in ("Live", "Other"):
        Live(stack, name, exchange=bus)


# What a user may give by mistake; the error names the property and what to give instead.
MISTAKES: list[tuple[Callable[[Stack], object], str]] = [
    (lambda stack: Exchange(stack, "Bus", orderd=True), "Exchange has no property 'orderd': did you mean 'ordered'"),  # type: ignore[call-arg]
    (lambda stack: Exchange(stack, "Bus", add_alarm=False), "no property 'add_alarm': did you mean 'add_alarms'"),  # type: ignore[call-arg]
    (lambda stack: Exchange(stack, "Bus", ordered="false"), "ordered: expected True or False, not 'false'"),  # type: ignore[arg-type]
    (lambda stack: Exchange(stack, "Bus", exchange_name="bus"), "exchange_name: expected 'x'"),
    (lambda stack: Exchange(stack, "Bus", exchange_name="xa.fifo", ordered=True), "`ordered` appends '.fifo'"),
    (lambda stack: Exchange(stack, "Bus", exchange_name="xa-dlq"), "exchange_name: .*without '-dlq'"),
    (lambda stack: Exchange(stack, "Bus", prefix="*"), "^prefix must match"),
    (
        lambda stack: Exchange(stack, "Bus", removal_policy="destroy"),
        "removal_policy: .*RETAIN, DESTROY, not 'destroy'",
    ),  # type: ignore[arg-type]
    (lambda stack: Exchange(stack, "Bus", removal_policy=RemovalPolicy.SNAPSHOT), "RETAIN, DESTROY, not SNAPSHOT"),
    (lambda stack: Exchange(stack, "Bus", log_retention=30), "log_retention: expected one of ONE_DAY, .*, not 30"),  # type: ignore[arg-type]
    (lambda stack: Exchange(stack, "Bus", add_alarms="no"), "add_alarms: expected True or False"),  # type: ignore[arg-type]
    (lambda stack: Exchange(stack, "Bus", alarm_topic="arn:aws:sns:a:1:b"), r"alarm_topic: .*sns.Topic.from_topic_arn"),  # type: ignore[arg-type]
    (lambda stack: Exchange(stack, "Bus", encryption_key="alias/a"), r"encryption_key: .*kms.Key.from_key_arn"),  # type: ignore[arg-type]
    (lambda stack: Exchange(stack, "Bus").bind("orders", "#"), "queue: expected a resource of the CDK, not 'orders'"),  # type: ignore[arg-type]
    (lambda stack: Exchange(stack, "Bus").bind(sqs.Queue(stack, "Q"), ""), "pattern: expected 1 to 255 bytes"),
    (lambda stack: Exchange(stack, "Bus").bind(sqs.Queue(stack, "Q"), "#.#.#"), "'#' 2 times at most, not '#.#.#'"),
    (bound_own, "queue: expected a queue of the app, not 'Shop/Bus/Exchange/Commands', which is Signalbox's own"),
    (bound_of_another, "not 'Shop/Other/Exchange/Commands', which is Signalbox's own"),
    (lambda stack: Live(stack, "Live", exchange="xbus"), "exchange: expected an Exchange, not 'xbus'"),  # type: ignore[arg-type]
    (lambda stack: Live(stack, "Live", exchange=Exchange(stack, "Bus")), "ordered=True"),
    (twice_live, "has a Live already"),
    (lambda stack: live_with(stack, issuers=[{"url": "https://id.example"}]), r"issuers\[0\]: audience must be given"),
    (
        lambda stack: live_with(stack, issuers=[{"role_clam": "r"}]),
        r"issuers\[0\] has no property 'role_clam': did you",
    ),
    (lambda stack: live_with(stack, issuers={"url": "https://id.example"}), "issuers: expected a list"),
    (lambda stack: live_with(stack, anonymous="a_b"), "anonymous: expected the name of a user"),
    (lambda stack: live_with(stack).add_user("a_b"), "name: expected the name of a user"),
    (lambda stack: live_with(stack).add_user("ab", role="king"), "role: expected one of 'admin', .*, not 'king'"),  # type: ignore[arg-type]
    (lambda stack: split_of(stack, consumers=[]), "consumers: expected a list with at least one resource"),
    (lambda stack: split_of(stack, consumers=["mail"]), "consumers: .*lambda_.Function.from_function_arn"),
    (lambda stack: split_of(stack, queues=["orders"]), "queues: .*sqs.Queue.from_queue_arn"),
    (lambda stack: split_of(stack, queues=[]), "queues: expected a list with at least one resource"),
    (lambda stack: split_of(stack, temporary_prefix=""), "^temporary_prefix must match"),
    (lambda stack: Rendezvous(stack, "Broker", doors="gate"), "^doors must be words of url, api,"),
    (lambda stack: Rendezvous(stack, "Broker", bridges="nowhere.jsonl"), "^bridges names no file"),
    (lambda stack: Rendezvous(stack, "Broker", client_queue_prefix=""), "client_queue_prefix must match"),
    (lambda stack: Rendezvous(stack, "Broker", broker_queue_name="a-broker", client_queue_prefix="a-"), "open the"),
]


@pytest.mark.parametrize(("make", "problem"), MISTAKES)
def test_a_mistake_is_refused_when_the_app_is_synthesized(make, problem):
    with pytest.raises((InvalidConfig, TypeError, ValueError), match=problem):
        make(Stack(App(context={"aws:cdk:bundling-stacks": []}), "Shop"))


@pytest.mark.parametrize(
    "text", ["xbus", "x", "xs_A-1", "xa-dlq", "xA-Exchange-Reply", "bus", "", "x.a", "xä", "x" * 81, "x" * 80]
)
def test_names_are_refused_exactly_if_control_refuses_them(text: str):
    def accepts(check: Callable[[], object], *errors: type[Exception]) -> bool:
        try:
            check()
        except errors:
            return False
        return True

    def name_of_control() -> None:
        if problem := exchange_name_problem(parse_exchange_name(text), prefix=""):
            raise RejectedError(problem)

    user, pattern = text[1:33], f"{text}.#.#"
    assert accepts(lambda: require_exchange(text, prefix="", ordered=False), ValueError) == accepts(
        name_of_control, RejectedError
    )
    assert accepts(lambda: require_user("name", user), ValueError) == accepts(
        lambda: parse_user_name(user), RejectedError
    )
    assert accepts(lambda: require_pattern(pattern * 4), ValueError) == accepts(
        lambda: Pattern.parse(pattern * 4), RejectedError
    )
