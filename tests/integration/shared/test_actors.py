"""Actors of the threat model with keys of AWS, at everything of the stage: each reaches what the page says, no more.

The roles of the exchange are in exchange/test_permissions.py, the ways around them in exchange/test_attacks.py and
exchange/test_control_queues.py; strangers and members of realms are in live/test_attacks.py and test_strangers.py.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.exchange.users import ExchangeUsers
from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.shared.deployment import Deployment
from signalbox.local.demo.exchange import exchange_user
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role
from tests.integration.rendezvous.peers import Parties

pytestmark = [pytest.mark.emulator, pytest.mark.release]

REFUSALS = {"AccessDenied", "AccessDeniedException"}
UNKNOWN_KEYS = {"InvalidClientTokenId", "InvalidAccessKeyId", "UnrecognizedClientException"}
NOTHING = ClientCredentials("AKIAIOSFODNN7EXAMPLE", "a-secret-of-a-stranger")
SEND, RECEIVE = "send", "receive"
# What the page says: the output or the name of each queue that an actor may use.
REACHES: Mapping[str, set[tuple[str, str]]] = {
    "stranger": set(),
    "Snowflake client": {(SEND, "BrokerQueueUrl"), (RECEIVE, "snowflake-client-of-another")},
    "user of the exchange": {(SEND, "control"), (RECEIVE, "replies")},
    "live-only user": set(),
    "user of splitting": {(SEND, "SplitControlQueueUrl"), (RECEIVE, "SplitReplyQueueUrl"), (RECEIVE, "mirrord-own")}
    | {(RECEIVE, "mirrord-of-another")},
    "owner of a consumer": set(),
    "developer with a session": {(RECEIVE, "mirrord-own")},
    "owner of another queue in the account": {
        (SEND, "others-queue"),
        (RECEIVE, "others-queue"),
        ("change", "others-queue"),
    },
}
MADE = ("snowflake-client-of-another", "mirrord-own", "mirrord-of-another", "others-queue")


@dataclass(frozen=True)
class Ground:
    """The stage's queues by output or name, and its other resources."""

    deployment: Deployment
    queues: Mapping[str, str]

    def calls(self, session: Any) -> dict[tuple[str, str], Callable[[], object]]:
        """Return every call of an actor, by what it does and to what."""
        sqs, outputs = session.client("sqs"), self.deployment.outputs
        closed = {"RedriveAllowPolicy": json.dumps({"redrivePermission": "denyAll"})}
        calls: dict[tuple[str, str], Callable[[], object]] = {}
        for name, url in self.queues.items():
            group = {"MessageGroupId": "g", "MessageDeduplicationId": "d"} if url.endswith(".fifo") else {}
            calls[SEND, name] = lambda url=url, group=group: sqs.send_message(QueueUrl=url, MessageBody="{}", **group)
            calls[RECEIVE, name] = lambda url=url: sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
            calls["change", name] = lambda url=url: sqs.set_queue_attributes(QueueUrl=url, Attributes=closed)
        for table in ("RendezvousTable", "SplitTable", "ExchangeTable", "LiveTable"):
            calls["scan", table] = lambda table=table: session.client("dynamodb").scan(TableName=outputs[table])
        for function in ("ControlFunctionName", "ExchangeControlFunctionName", "RouteFunctionName"):
            name = outputs[function]
            calls["invoke", function] = lambda name=name: session.client("lambda").invoke(FunctionName=name)
            calls["change", function] = lambda name=name: session.client("lambda").update_function_configuration(
                FunctionName=name, Description="changed"
            )
        bucket = outputs["HistoryBucket"]
        calls["list", "HistoryBucket"] = lambda: session.client("s3").list_objects_v2(Bucket=bucket)
        calls["write", "HistoryBucket"] = lambda: session.client("s3").put_object(Bucket=bucket, Key="audits/a")
        calls["create", "queue"] = lambda: sqs.create_queue(QueueName=f"mirrord-{secrets.token_hex(4)}")
        calls["list", "queues"] = sqs.list_queues
        calls["list", "secrets"] = session.client("secretsmanager").list_secrets
        calls["list", "users"] = session.client("iam").list_users
        return calls

    def reached(self, session: Any) -> set[tuple[str, str]]:
        return {what for what, call in self.calls(session).items() if is_permitted(call)}


def is_permitted(call: Callable[[], object]) -> bool:
    try:
        call()
    except ClientError as error:
        if error.response["Error"]["Code"] not in REFUSALS | UNKNOWN_KEYS:
            raise
        return False
    return True


@contextmanager
def iam_user(deployment: Deployment, *, managed: str = "", statements: tuple[object, ...] = ()) -> Iterator[Any]:
    """Yield the session of a new user of the account with a policy."""
    iam, name = deployment.session().client("iam"), f"actor-{secrets.token_hex(4)}"
    iam.create_user(UserName=name)
    with ExitStack() as stack:
        stack.callback(iam.delete_user, UserName=name)
        if managed:
            iam.attach_user_policy(UserName=name, PolicyArn=managed)
            stack.callback(iam.detach_user_policy, UserName=name, PolicyArn=managed)
        if statements:
            document = json.dumps({"Version": "2012-10-17", "Statement": statements})
            iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=document)
            stack.callback(iam.delete_user_policy, UserName=name, PolicyName="own")
        key = iam.create_access_key(UserName=name)["AccessKey"]
        stack.callback(iam.delete_access_key, UserName=name, AccessKeyId=key["AccessKeyId"])
        yield deployment.session_of(ClientCredentials(key["AccessKeyId"], key["SecretAccessKey"]))


@pytest.fixture(scope="module")
def ground(deployment: Deployment) -> Iterator[Ground]:
    sqs = deployment.session().client("sqs")
    made = {name: str(sqs.create_queue(QueueName=name)["QueueUrl"]) for name in MADE}
    stages = {name: url for name, url in deployment.outputs.items() if name.endswith("QueueUrl") or "boxUrl" in name}
    yield Ground(deployment, stages | made)
    for url in made.values():
        sqs.delete_queue(QueueUrl=url)


@contextmanager
def acting(actor: str, ground: Ground, parties: Parties) -> Iterator[tuple[Ground, Any]]:
    """Yield an actor's session, and the ground with the actor's own queues."""
    deployment, arns = ground.deployment, ground.deployment.outputs["BrokerQueueArn"].rpartition(":")[0]
    use = {"Effect": "Allow", "Action": ["sqs:SendMessage", "sqs:ReceiveMessage", "sqs:SetQueueAttributes"]}
    with ExitStack() as stack:
        match actor:
            case "Snowflake client":
                yield ground, parties.client_session
            case "user of the exchange":  # a subscriber
                user = stack.enter_context(exchange_user(deployment, UserName("actor"), Role.SUBSCRIBER))
                key = ExchangeUsers.of(deployment.session(), deployment.outputs).new_key(UserName("actor"))
                own = {
                    "control": f"{user.url_prefix}{user.names.control_queue(UserName('actor'))}",
                    "replies": f"{user.url_prefix}{user.names.reply_queue(UserName('actor'))}",
                }
                yield (
                    Ground(deployment, ground.queues | own),
                    deployment.session_of(ClientCredentials(key.access_key_id, key.secret_access_key)),
                )
            case "user of splitting":
                yield (
                    ground,
                    stack.enter_context(iam_user(deployment, managed=deployment.outputs["SplitUserPolicyArn"])),
                )
            case "owner of a consumer":  # a function, and everything of ECS and EKS
                function = f"{arns.replace(':sqs:', ':lambda:')}:function:consumer-*"
                own = {"Effect": "Allow", "Action": ["lambda:Update*", "lambda:Invoke*"], "Resource": function}
                clusters = {"Effect": "Allow", "Action": ["ecs:*", "eks:*"], "Resource": "*"}
                yield ground, stack.enter_context(iam_user(deployment, statements=(own, clusters)))
            case "developer with a session":
                receive = {"Effect": "Allow", "Action": "sqs:ReceiveMessage", "Resource": f"{arns}:mirrord-own"}
                yield ground, stack.enter_context(iam_user(deployment, statements=(receive,)))
            case "owner of another queue in the account":
                others = use | {"Resource": f"{arns}:others-*"}
                yield ground, stack.enter_context(iam_user(deployment, statements=(others,)))
            case _:  # a stranger, and a live-only user, who is no identity of AWS
                yield ground, deployment.session_of(NOTHING)


@pytest.mark.parametrize("actor", REACHES)
def test_an_actor_reaches_what_the_page_says_and_no_more(actor: str, ground: Ground, all_parties: Parties) -> None:
    with acting(actor, ground, all_parties) as (seen, session):
        assert seen.reached(session) == REACHES[actor]
