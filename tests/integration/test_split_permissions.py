"""Who may do what of splitting on the deployed stage, as a table; the stage's settings make `demo-*` splittable."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import boto3
import pytest

from signalbox.cli.deployment import Deployment
from tests.integration import identities
from tests.integration.identities import KEY_ITSELF, STAGE_CALLS, Call, acting_as, calling, just, person_with

pytestmark = pytest.mark.emulator

OUR_MARK = "permissions"
NOBODY = {"S": "nobody"}
# Where it is taken for a command it changes nothing and nobody gets a reply.
COMMAND = '{"command": "status", "id": "by-a-test"}'
STAGE_QUEUES = {"control queue": "SplitControlQueueUrl", "dead letters": "SplitDeadLetterQueueUrl"}
BROKER_QUEUE = "broker queue"


@dataclass(frozen=True, slots=True)
class Place:
    """What the calls are about: queues of the stage, and fresh ones of each kind."""

    outputs: Mapping[str, str]
    key: str
    urls: dict[str, str] = field(default_factory=dict)
    """Of queues by their kinds."""

    @property
    def prefixes(self) -> dict[str, str]:
        """What names of queues start with, by kind, that the test may make itself."""
        prefixes = {
            "original": "demo-",
            "temporary queue": self.outputs["TemporaryQueuePrefix"],
            "reply queue": self.outputs["SplitReplyQueuePrefix"],
            "other queue": "other-",
        }
        return {kind: f"{prefix}{OUR_MARK}-" for kind, prefix in prefixes.items()}

    def fresh_name(self, kind: str) -> str:
        return f"{self.prefixes[kind]}{secrets.token_hex(4)}"


def _url(kind: str, place: Place) -> str:
    return place.urls[kind]


def _name(kind: str, place: Place) -> str:
    return place.urls[kind].rpartition("/")[2]


def _on_queue(kind: str) -> dict[str, Call]:
    """The calls that can be made about a queue, those last that end it."""
    url = partial(_url, kind)
    handle = just("none")
    calls = {
        "find": calling("sqs", "get_queue_url", QueueName=partial(_name, kind)),
        "look": calling("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=just(["All"])),
        "see tags": calling("sqs", "list_queue_tags", QueueUrl=url),
        "send": calling("sqs", "send_message", QueueUrl=url, MessageBody=just(COMMAND)),
        "receive": calling("sqs", "receive_message", QueueUrl=url, VisibilityTimeout=just(0)),
        "remove": calling("sqs", "delete_message", QueueUrl=url, ReceiptHandle=handle),
        "hold": calling(
            "sqs", "change_message_visibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=just(0)
        ),
        "tag": calling("sqs", "tag_queue", QueueUrl=url, Tags=just({"a": "b"})),
        "change": calling("sqs", "set_queue_attributes", QueueUrl=url, Attributes=just({"DelaySeconds": "0"})),
        "empty": calling("sqs", "purge_queue", QueueUrl=url),
        "delete": calling("sqs", "delete_queue", QueueUrl=url),
    }
    return {f"{kind}: {what}": call for what, call in calls.items()}


def _make(kind: str) -> Call:
    return calling("sqs", "create_queue", QueueName=lambda place: place.fresh_name(kind))


OWN_KINDS = ("original", "temporary queue", "reply queue", "other queue")
QUEUES: dict[str, Call] = {
    **{f"{kind}: make": _make(kind) for kind in OWN_KINDS},
    **{what: call for kind in (*OWN_KINDS, *STAGE_QUEUES, BROKER_QUEUE) for what, call in _on_queue(kind).items()},
}


def _on_table(name: str, output: str, **key: object) -> dict[str, Call]:
    where = {"TableName": lambda place: place.outputs[output]}
    calls = {
        "get": calling("dynamodb", "get_item", **where, Key=just(key)),
        "put": calling("dynamodb", "put_item", **where, Item=just(key)),
        "update": calling("dynamodb", "update_item", **where, Key=just(key)),
        "scan": calling("dynamodb", "scan", **where),
        "delete": calling("dynamodb", "delete_item", **where, Key=just(key)),
    }
    return {f"{name}: {what}": call for what, call in calls.items()}


TABLES: dict[str, Call] = {
    **_on_table("splits", "SplitTable", pk=NOBODY, sk=NOBODY),
    "splits: list": calling(
        "dynamodb",
        "query",
        TableName=lambda place: place.outputs["SplitTable"],
        IndexName=just("by_kind"),
        KeyConditionExpression=just("kind = :kind"),
        ExpressionAttributeValues=just({":kind": NOBODY}),
    ),
    **_on_table("rendezvous table", "RendezvousTable", pk=NOBODY, sk=NOBODY),
    **_on_table("leases", "LeaseTable", queue_name=NOBODY),
}


def _on_function(name: str, output: str | None) -> dict[str, Call]:
    """The calls about a function; the target is one that is not there, which is noticed after the permission."""
    which = {"FunctionName": lambda place: place.outputs[output] if output else f"demo-{OUR_MARK}"}
    calls = {
        "look": calling("lambda", "get_function_configuration", **which),
        "fetch": calling("lambda", "get_function", **which),
        "change": calling("lambda", "update_function_configuration", **which, Description=just("by a test")),
        "publish": calling("lambda", "publish_version", **which),
        "see aliases": calling("lambda", "list_aliases", **which),
        "change code": calling("lambda", "update_function_code", **which, ZipFile=just(b"none")),
        "call": calling("lambda", "invoke", **which, Payload=just(b'{"task":"reconcile"}')),
        "delete": calling("lambda", "delete_function", **which),
    }
    return {f"{name}: {what}": call for what, call in calls.items()}


# The emulator does not check who looks at, changes or deletes one mapping; the test of the template's permissions does.
FUNCTIONS: dict[str, Call] = {
    **_on_function("target", None),
    **_on_function("other function", "SweepFunctionName"),
    "mappings: see": calling("lambda", "list_event_source_mappings"),
    "mappings: make": calling(
        "lambda",
        "create_event_source_mapping",
        FunctionName=just(f"demo-{OUR_MARK}"),
        EventSourceArn=just("arn:aws:sqs:us-east-1:000000000000:demo-none"),
    ),
}
QUESTION = {"QueryExecutionId": just("none")}


def _ask_history(work_group: str) -> Call:
    return calling(
        "athena",
        "start_query_execution",
        QueryString=just("SELECT 1"),
        WorkGroup=just(work_group),
        ResultConfiguration=lambda place: {"OutputLocation": f"s3://{place.outputs['HistoryBucket']}/queries/"},
    )


ROLE = {"RoleName": just(f"demo-{OUR_MARK}")}
OTHERS: dict[str, Call] = {
    "target's role: see policies": calling("iam", "list_role_policies", **ROLE),
    "target's role: see": calling("iam", "get_role", **ROLE),
    "target's role: change": calling(
        "iam", "put_role_policy", **ROLE, PolicyName=just("more"), PolicyDocument=just("{}")
    ),
    "target's role: attach": calling(
        "iam", "attach_role_policy", **ROLE, PolicyArn=just("arn:aws:iam::aws:policy/AdministratorAccess")
    ),
    "history: read": calling(
        "s3", "get_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just("raw/none")
    ),
    "history: change": calling(
        "s3", "put_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just(f"raw/{OUR_MARK}")
    ),
    "history: delete": calling(
        "s3", "delete_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just(f"raw/{OUR_MARK}")
    ),
    "answers: write": calling(
        "s3", "put_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just(f"queries/{OUR_MARK}")
    ),
    "history: ask": _ask_history("primary"),
    "history: see question": calling("athena", "get_query_execution", **QUESTION),
    "history: see answer": calling("athena", "get_query_results", **QUESTION),
    "history: ask elsewhere": _ask_history(f"demo-{OUR_MARK}"),
    "parameter: see": calling("ssm", "get_parameter", Name=just(f"demo-{OUR_MARK}")),
    "service: see": calling("ecs", "describe_services", cluster=just("demo"), services=just(["demo"])),
    "secrets: list": calling("secretsmanager", "list_secrets"),
}
CALLS: dict[str, Call] = {**TABLES, **FUNCTIONS, **OTHERS, **STAGE_CALLS, **QUEUES}


def _allowed(**by_subject: str) -> set[str]:
    """Return the calls of a table whose words are operations; `_` in a subject is a space."""
    return {
        f"{subject.replace('_', ' ')}: {what}"
        for subject, operations in by_subject.items()
        for what in operations.split(", ")
    }


ALLOWED: dict[str, set[str]] = {
    "split": _allowed(
        original="look, receive, remove", temporary_queue="send", dead_letters="send", splits="get, put, delete"
    )
    | {"write history"},
    "control": _allowed(
        original="find, look, see tags, send",
        temporary_queue="make, tag, look, see tags, send, receive, remove, delete",
        reply_queue="look, see tags, send, delete",
        control_queue="look, send, receive, remove",
        dead_letters="send",
        splits="get, put, update, delete, list",
        target="look, change, publish, see aliases",
        mappings="see, make",
        history="read, ask, see question, see answer",
        answers="write",
    )
    | {"target's role: see policies", "list queues", "list history", "write history"},
    "person": _allowed(
        control_queue="find, send",
        reply_queue="make, tag, find, receive, remove, delete",
        temporary_queue="find, look, receive, remove, hold",
        history="read, ask, see question, see answer",
        answers="write",
    )
    | {"list history"},
}
# The administrator does not break what the stage needs: the calls are tried on queues of the test's own.
HARMFUL = {
    f"{kind}: {what}"
    for kind in (*STAGE_QUEUES, BROKER_QUEUE)
    for what in ("send", "tag", "change", "empty", "delete", "hold", "remove")
} | {f"other function: {what}" for what in ("change", "publish", "change code", "call", "delete")}


@contextmanager
def identity(deployment: Deployment, name: str) -> Iterator[boto3.Session]:
    if name == "person":
        with person_with(deployment, deployment.outputs["SplitUserPolicyArn"]) as session:
            yield session
        return
    with acting_as(deployment, identities.functions_of(deployment, "splitting")[name]["Role"]) as session:
        yield session


@pytest.fixture
def place(deployment: Deployment) -> Iterator[Place]:
    """The stage's queues and fresh ones; afterwards what the calls have made is gone."""
    sqs, outputs = deployment.session().client("sqs"), deployment.outputs
    place = Place(outputs, identities.key_of(deployment, outputs["SplitControlQueueUrl"]))
    place.urls.update({kind: outputs[output] for kind, output in STAGE_QUEUES.items()})
    place.urls[BROKER_QUEUE] = outputs["BrokerQueueUrl"]
    for kind in OWN_KINDS:
        place.urls[kind] = sqs.create_queue(QueueName=place.fresh_name(kind))["QueueUrl"]
    yield place
    for prefix in place.prefixes.values():
        for url in sqs.list_queues(QueueNamePrefix=prefix).get("QueueUrls", []):
            with suppress(sqs.exceptions.QueueDoesNotExist):
                sqs.delete_queue(QueueUrl=url)
    sqs.purge_queue(QueueUrl=outputs["SplitDeadLetterQueueUrl"])


@pytest.mark.parametrize("name", ALLOWED)
def test_an_identity_of_splitting_may_do_what_the_table_says_and_nothing_else(
    deployment: Deployment, place: Place, name: str
):
    with identity(deployment, name) as session:
        allowed = identities.allowed(CALLS, session, place)

    assert allowed == ALLOWED[name]


def test_every_function_of_splitting_is_in_the_table(deployment: Deployment):
    assert identities.functions_of(deployment, "splitting").keys() | {"person"} == ALLOWED.keys()


def test_the_administrator_is_refused_none_of_it_but_the_key_itself(deployment: Deployment, place: Place):
    refused = identities.refused_to_administrator(CALLS, deployment, place, without=HARMFUL)

    assert refused == {KEY_ITSELF}
