"""All policies, rendered: without findings of cfn-lint, and judged call by call by a simulator of IAM.

The policies are those of both templates, those of the exchange's users, and those of queues made at run time.
"""

import json
import tomllib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from signalbox.aws.exchange.policy import ExchangeLocation, user_policy
from signalbox.aws.rendezvous.queues import SqsClientQueues
from signalbox.aws.shared.managed_queues import OwnQueues
from signalbox.exchange.model.names import StageNames
from signalbox.queues import QueueName
from signalbox.rendezvous.model.states import ClientId
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.aws import aws, sqs
from tests.infrastructure.rendering import ACCOUNT, REGION, STAGE, Account, Policy
from tests.infrastructure.simulation import Call, allowed
from tests.unit.exchange.test_rights import EXCHANGES, NAMES, may_send

__all__ = ["aws", "sqs"]

TABLE = tomllib.loads(Path(__file__).with_name("calls.toml").read_text(encoding="utf-8"))


def who(names: str) -> frozenset[str]:
    """Return the identities that a text of the table names."""
    found: frozenset[str] = frozenset()
    for word in names.split():
        name = word.removeprefix("-")
        named = who(TABLE["identities"][name]) if name in TABLE["identities"] else frozenset({name})
        found = found | named if word == name else found - named
    return found


CALLS = {call: who(names) for part in TABLE["calls"].values() for call, names in part.items()}
RESOURCES: dict[str, str] = TABLE["resources"]
QUEUES = f"arn:aws:sqs:{REGION}:{ACCOUNT}:"
EVERYTHING: Policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@pytest.fixture(scope="module")
def account(stage) -> Account:
    return Account(stage)


@pytest.fixture(scope="module")
def identities(account: Account) -> dict[str, list[Policy]]:
    """Return the policies of every identity: those of the template, and the kinds of users of the exchange."""
    return account.identity_policies() | {name: [policy] for name, policy in users(account).items()}


def users(account: Account) -> dict[str, Policy]:
    location = ExchangeLocation(StageNames(STAGE, ""), QUEUES, account.arns["StateKey"])
    kinds = {role.value: (role, Ownership.STRICT) for role in Role} | {"loose-source": (Role.SOURCE, Ownership.LOOSE)}
    return {name: dict(user_policy(UserName("alice"), *kind, location)) for name, kind in kinds.items()}


def call(account: Account, text: str, principal: str, policies: list[Policy]) -> Call:
    """Return the call that a row of the table names, by a principal with policies."""
    action, name, *rest = text.split(" ")
    found = dict(zip(rest[::2], rest[1::2], strict=True))
    resource = resource_of(account, name)
    context = {}
    if found.get("over") == "http":
        context["aws:SecureTransport"] = "false"
    if "via" in found:
        context["kms:ViaService"] = f"{found['via']}.{REGION}.amazonaws.com"
    if "on" in found:
        context["kms:EncryptionContext:aws:sqs:arn"] = account.arns[found["on"]]
    if "for" in found:
        context["lambda:FunctionArn"] = account.arns.get(found["for"]) or RESOURCES[found["for"]]
    for word, key in (("of", "aws:ResourceTag"), ("as", "aws:RequestTag")):
        if word in found:
            context |= {f"{key}/signalbox:stage": STAGE, f"{key}/signalbox:capability": found[word]}
    owner = account.arns["History"] if resource.startswith(account.arns["History"]) else resource
    return Call(principal, policies, action, resource, account.resource_policies().get(owner), context)


def resource_of(account: Account, name: str) -> str:
    if name in RESOURCES:
        (websocket,) = (key for key, path in account.templates.names.items() if path == "Live/Connections/WebSocket")
        return RESOURCES[name].format(websocket=account.name(websocket))
    if name in account.arns:
        # A log group's ARN in a policy is that of its streams.
        return account.arns[name].removesuffix("*") + "log-stream:a" if name.endswith("Logs") else account.arns[name]
    whole, _, part = name.partition("/")
    if whole in account.arns:
        return f"{account.arns[whole]}/{part}"
    return name if name == "*" or name.startswith("arn:") else QUEUES + name


def principal_of(name: str) -> str:
    """Return the ARN of an identity as IAM sees it: a session of a role, or a user."""
    if name.endswith("Role"):
        return f"arn:aws:sts::{ACCOUNT}:assumed-role/{name.replace('/', '-')}/session"
    return f"arn:aws:iam::{ACCOUNT}:user/{name.replace('/', '-')}"


def findings(policies: list[Policy]) -> list[str]:
    """Return cfn-lint's findings: on the grammar, unknown actions, and actions that no resource of a statement has."""
    documents = json.loads(json.dumps(policies, default=str))
    kind = "AWS::IAM::ManagedPolicy"
    resources = {f"P{n}": {"Type": kind, "Properties": {"PolicyDocument": one}} for n, one in enumerate(documents)}
    found = lint(json.dumps({"Resources": resources}), config=ManualArgs(include_checks=["I3510"], regions=[REGION]))
    return [f"{policies[int(one.path[1][1:])]}: {one.message}" for one in found]


def test_roles_and_users_have_policies_without_findings(identities: dict[str, list[Policy]]) -> None:
    assert len(identities) > 30
    assert findings([policy for policies in identities.values() for policy in policies]) == []


@pytest.mark.parametrize(
    ("action", "resource", "finding"),
    [("sqs:SendMesage", QUEUES + "a", "sendmesage"), ("sqs:SendMessage", "arn:aws:s3:::a/b", "requires a resource")],
)
def test_a_misspelt_action_and_a_resource_of_another_service_are_findings(action, resource, finding) -> None:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}

    (found,) = findings([{"Version": "2012-10-17", "Statement": [statement]}])

    assert finding in found


def test_each_call_is_allowed_to_those_of_the_table_and_refused_to_all_others(account, identities) -> None:
    made = [(text, name) for text in CALLS for name in identities]
    results = allowed(call(account, text, principal_of(name), identities[name]) for text, name in made)

    found: dict[str, set[str]] = defaultdict(set)
    for (text, name), is_allowed in zip(made, results, strict=True):
        found[text] |= {name} if is_allowed else set()
    assert {text: sorted(found[text]) for text in CALLS} == {text: sorted(names) for text, names in CALLS.items()}


def test_the_property_of_rights_judges_policies_as_iam_does() -> None:
    """tests/unit/exchange/test_rights.py matches the policies of random users itself, since Node is too slow for it."""
    location = ExchangeLocation(StageNames("s"), QUEUES, f"arn:aws:kms:{REGION}:{ACCOUNT}:key/k")
    cases = [(name, role, exchange) for name in NAMES for role in Role for exchange in EXCHANGES]
    calls = [
        Call(
            f"arn:aws:iam::{ACCOUNT}:user/{name}",
            [dict(user_policy(UserName(name), role, Ownership.STRICT, location))],
            "sqs:SendMessage",
            QUEUES + exchange,
        )
        for name, role, exchange in cases
    ]

    found = allowed(calls)

    assert found == [may_send(*case) for case in cases]
    assert len(set(found)) == 2


def test_the_table_has_calls_of_every_identity(identities: dict[str, list[Policy]]) -> None:
    assert set().union(*CALLS.values()) == set(identities)
    assert set(identities) > who("FUNCTIONS USERS")


def test_a_policy_that_allows_everything_does_not_suffice_without_tls_or_the_service_of_a_key(account) -> None:
    administrator = f"arn:aws:iam::{ACCOUNT}:user/administrator"
    calls = [call(account, text, administrator, [EVERYTHING]) for text in TABLE["refused_to_administrators"]]
    possible = [call(account, text.replace(" over http", ""), administrator, [EVERYTHING]) for text in CALLS]

    assert not any(allowed(calls))
    assert [one.action for one, is_allowed in zip(possible, allowed(possible), strict=True) if not is_allowed] == [
        one.action for one in possible if one.action.startswith("kms:") and not is_through_a_service(one)
    ]


def is_through_a_service(one: Call) -> bool:
    via = one.context.get("kms:ViaService", "").partition(".")[0]
    return one.action == "kms:ScheduleKeyDeletion" or via in {"dynamodb", "firehose", "s3", "sqs"}


@pytest.mark.parametrize("text", ["sqs:SendMessage Rendezvous/Broker", "s3:GetObject History/raw/events/a"])
def test_other_accounts_have_no_access(account: Account, text: str) -> None:
    stranger = call(account, text, "arn:aws:iam::999999999999:user/mallory", [EVERYTHING])

    assert allowed([stranger]) == [False]


def test_a_role_but_the_reader_of_history_is_assumed_by_a_service_only(account: Account) -> None:
    administrator, trusted = f"arn:aws:iam::{ACCOUNT}:user/administrator", account.trust_policies()
    calls = {
        name: Call(administrator, [EVERYTHING], "sts:AssumeRole", account.arns[name], policy)
        for name, policy in trusted.items()
    }

    assert [name for name, is_allowed in zip(calls, allowed([*calls.values()]), strict=True) if is_allowed] == [
        "HistoryLake/ReaderRole"
    ]
    assert {kind for policy in trusted.values() for kind in policy["Statement"][0]["Principal"]} == {"Service", "AWS"}


def test_queues_made_at_run_time_refuse_requests_without_tls(account: Account, identities, sqs) -> None:
    urls, name = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/", "snowflake-client-"
    clients = SqsClientQueues(sqs, QUEUES + name, url_prefix=urls + name, stage=STAGE, sleep=lambda _: None)
    clients.create(ClientId("a"), message_id="m1")
    own = OwnQueues(sqs, urls, QUEUES)
    own.make(QueueName("xs_alice"), {}, {})
    made = {
        "sqs:ReceiveMessage snowflake-client-a": "Rendezvous/ClientUser",
        "sqs:SendMessage snowflake-client-a": "Doors/ProxiesRole",
        "sqs:SendMessage xs_alice": "source",
    }
    for text, name in made.items():
        url = sqs.get_queue_url(QueueName=text.partition(" ")[2])["QueueUrl"]
        policy = json.loads(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"])
        for suffix, expected in (("", True), (" over http", False)):
            one = call(account, text + suffix, principal_of(name), identities[name])
            assert allowed([replace(one, resource_policy=policy)]) == [expected]
