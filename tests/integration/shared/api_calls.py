"""Calls about queues, tables and functions, and the tables of who may make them."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared import permission_checks
from tests.integration.shared.permission_checks import Argument, Call, calling, just

OUR_MARK = "permissions"
NOBODY = {"S": "nobody"}
# Where it is taken for a command it changes nothing and nobody gets a reply.
COMMAND = '{"command": "status", "id": "by-a-test"}'


@dataclass(frozen=True, slots=True)
class Place:
    """What the calls are about: queues of the stage, and fresh ones of each kind."""

    outputs: Mapping[str, str]
    key: str
    beginnings: Mapping[str, str]
    """What names of queues start with, by kind, that the test may make itself."""
    urls: dict[str, str] = field(default_factory=dict)
    """Of queues by their kinds."""

    def prefix(self, kind: str) -> str:
        return f"{self.beginnings[kind]}{OUR_MARK}-"

    def fresh_name(self, kind: str) -> str:
        return f"{self.prefix(kind)}{secrets.token_hex(4)}"


@contextmanager
def place_of(
    deployment: Deployment, *, stage_queues: Mapping[str, str], beginnings: Mapping[str, str]
) -> Iterator[Place]:
    """Return the stage's queues and fresh ones; afterwards what the calls have made is gone."""
    sqs, outputs = deployment.session().client("sqs"), deployment.outputs
    urls = {kind: outputs[output] for kind, output in stage_queues.items()}
    place = Place(outputs, permission_checks.key_of(deployment, next(iter(urls.values()))), beginnings, urls)
    for kind in beginnings:
        place.urls[kind] = sqs.create_queue(QueueName=place.fresh_name(kind))["QueueUrl"]
    yield place
    for kind in beginnings:
        for url in sqs.list_queues(QueueNamePrefix=place.prefix(kind)).get("QueueUrls", []):
            with suppress(sqs.exceptions.QueueDoesNotExist):
                sqs.delete_queue(QueueUrl=url)


def make_queue(kind: str) -> Call:
    return calling("sqs", "create_queue", QueueName=lambda place: place.fresh_name(kind))


def on_queue(kind: str) -> dict[str, Call]:
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


def _url(kind: str, place: Place) -> str:
    return place.urls[kind]


def _name(kind: str, place: Place) -> str:
    return place.urls[kind].rpartition("/")[2]


def on_table(name: str, output: str, **key: object) -> dict[str, Call]:
    where = {"TableName": lambda place: place.outputs[output]}
    calls = {
        "get": calling("dynamodb", "get_item", **where, Key=just(key)),
        "put": calling("dynamodb", "put_item", **where, Item=just(key)),
        "update": calling("dynamodb", "update_item", **where, Key=just(key)),
        "scan": calling("dynamodb", "scan", **where),
        "delete": calling("dynamodb", "delete_item", **where, Key=just(key)),
    }
    return {f"{name}: {what}": call for what, call in calls.items()}


def on_kinds(name: str, output: str) -> dict[str, Call]:
    """The call that lists all of a kind."""
    call = calling(
        "dynamodb",
        "query",
        TableName=lambda place: place.outputs[output],
        IndexName=just("by_kind"),
        KeyConditionExpression=just("kind = :kind"),
        ExpressionAttributeValues=just({":kind": NOBODY}),
    )
    return {f"{name}: list": call}


def on_function(name: str, which: Argument) -> dict[str, Call]:
    """The calls about a function; one that is not there is noticed after the permission."""
    function = {"FunctionName": which}
    calls = {
        "look": calling("lambda", "get_function_configuration", **function),
        "fetch": calling("lambda", "get_function", **function),
        "change": calling("lambda", "update_function_configuration", **function, Description=just("by a test")),
        "publish": calling("lambda", "publish_version", **function),
        "see aliases": calling("lambda", "list_aliases", **function),
        "change code": calling("lambda", "update_function_code", **function, ZipFile=just(b"none")),
        "call": calling("lambda", "invoke", **function, Payload=just(b'{"task":"reconcile"}')),
        "delete": calling("lambda", "delete_function", **function),
    }
    return {f"{name}: {what}": call for what, call in calls.items()}


# The emulator does not check who looks at, changes or deletes one mapping; the test of the template's permissions does.
MAPPINGS: dict[str, Call] = {
    "mappings: see": calling("lambda", "list_event_source_mappings"),
    "mappings: make": calling(
        "lambda",
        "create_event_source_mapping",
        FunctionName=just(f"demo-{OUR_MARK}"),
        EventSourceArn=just("arn:aws:sqs:us-east-1:000000000000:demo-none"),
    ),
}


def table_of(**by_subject: str) -> set[str]:
    """Return the calls of a table whose words are operations; `_` in a subject is a space."""
    return {
        f"{subject.replace('_', ' ')}: {what}"
        for subject, operations in by_subject.items()
        for what in operations.split(", ")
    }
