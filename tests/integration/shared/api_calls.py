"""AWS calls on queues, tables and functions, for the tests of permissions."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared import permission_checks
from tests.integration.shared.permission_checks import Argument, Call, api_call, constant

OUR_MARK = "permissions"
NOBODY = {"S": "nobody"}
# A control queue executes it as a command that changes nothing and gets no reply.
COMMAND = '{"command": "status", "id": "by-a-test"}'


@dataclass(frozen=True, slots=True)
class Resources:
    """The queues that calls use: the stage's, and a new one of each kind."""

    outputs: Mapping[str, str]
    key: str
    beginnings: Mapping[str, str]
    """The name prefixes of the queues that the test creates, by kind."""
    urls: dict[str, str] = field(default_factory=dict)
    """The URLs of the queues by kind."""

    def prefix(self, kind: str) -> str:
        return f"{self.beginnings[kind]}{OUR_MARK}-"

    def fresh_name(self, kind: str) -> str:
        return f"{self.prefix(kind)}{secrets.token_hex(4)}"


@contextmanager
def resources_of(
    deployment: Deployment, *, stage_queues: Mapping[str, str], beginnings: Mapping[str, str]
) -> Iterator[Resources]:
    """Yield the stage's queues and new ones; delete the new ones and those of the calls afterwards."""
    sqs, outputs = deployment.session().client("sqs"), deployment.outputs
    urls = {kind: outputs[output] for kind, output in stage_queues.items()}
    resources = Resources(outputs, permission_checks.key_of(deployment, next(iter(urls.values()))), beginnings, urls)
    for kind in beginnings:
        resources.urls[kind] = sqs.create_queue(QueueName=resources.fresh_name(kind))["QueueUrl"]
    yield resources
    for kind in beginnings:
        for url in sqs.list_queues(QueueNamePrefix=resources.prefix(kind)).get("QueueUrls", []):
            with suppress(sqs.exceptions.QueueDoesNotExist):
                sqs.delete_queue(QueueUrl=url)


def create_queue_call(kind: str) -> Call:
    return api_call("sqs", "create_queue", QueueName=lambda resources: resources.fresh_name(kind))


def queue_calls(kind: str) -> dict[str, Call]:
    """Return the calls on a queue, with deletion last."""
    url = partial(_url, kind)
    handle = constant("none")
    calls = {
        "find": api_call("sqs", "get_queue_url", QueueName=partial(_name, kind)),
        "look": api_call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=constant(["All"])),
        "see tags": api_call("sqs", "list_queue_tags", QueueUrl=url),
        "send": api_call("sqs", "send_message", QueueUrl=url, MessageBody=constant(COMMAND)),
        "receive": api_call("sqs", "receive_message", QueueUrl=url, VisibilityTimeout=constant(0)),
        "remove": api_call("sqs", "delete_message", QueueUrl=url, ReceiptHandle=handle),
        "hold": api_call(
            "sqs", "change_message_visibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=constant(0)
        ),
        "tag": api_call("sqs", "tag_queue", QueueUrl=url, Tags=constant({"a": "b"})),
        "change": api_call("sqs", "set_queue_attributes", QueueUrl=url, Attributes=constant({"DelaySeconds": "0"})),
        "empty": api_call("sqs", "purge_queue", QueueUrl=url),
        "delete": api_call("sqs", "delete_queue", QueueUrl=url),
    }
    return {f"{kind}: {what}": call for what, call in calls.items()}


def _url(kind: str, resources: Resources) -> str:
    return resources.urls[kind]


def _name(kind: str, resources: Resources) -> str:
    return resources.urls[kind].rpartition("/")[2]


def table_calls(name: str, output: str, **key: object) -> dict[str, Call]:
    where = {"TableName": lambda resources: resources.outputs[output]}
    calls = {
        "get": api_call("dynamodb", "get_item", **where, Key=constant(key)),
        "put": api_call("dynamodb", "put_item", **where, Item=constant(key)),
        "update": api_call("dynamodb", "update_item", **where, Key=constant(key)),
        "scan": api_call("dynamodb", "scan", **where),
        "delete": api_call("dynamodb", "delete_item", **where, Key=constant(key)),
    }
    return {f"{name}: {what}": call for what, call in calls.items()}


def list_by_kind_call(name: str, output: str) -> dict[str, Call]:
    """Return the query of the index `by_kind`."""
    call = api_call(
        "dynamodb",
        "query",
        TableName=lambda resources: resources.outputs[output],
        IndexName=constant("by_kind"),
        KeyConditionExpression=constant("kind = :kind"),
        ExpressionAttributeValues=constant({":kind": NOBODY}),
    )
    return {f"{name}: list": call}


def function_calls(name: str, which: Argument) -> dict[str, Call]:
    """Return the calls on a function; the permission check precedes the check that it exists."""
    function = {"FunctionName": which}
    calls = {
        "look": api_call("lambda", "get_function_configuration", **function),
        "fetch": api_call("lambda", "get_function", **function),
        "change": api_call("lambda", "update_function_configuration", **function, Description=constant("by a test")),
        "publish": api_call("lambda", "publish_version", **function),
        "see aliases": api_call("lambda", "list_aliases", **function),
        "change code": api_call("lambda", "update_function_code", **function, ZipFile=constant(b"none")),
        "call": api_call("lambda", "invoke", **function, Payload=constant(b'{"task":"reconcile"}')),
        "delete": api_call("lambda", "delete_function", **function),
    }
    return {f"{name}: {what}": call for what, call in calls.items()}


# The emulator does not check permissions on a single mapping; the test of the templates' permissions does.
MAPPINGS: dict[str, Call] = {
    "mappings: see": api_call("lambda", "list_event_source_mappings"),
    "mappings: make": api_call(
        "lambda",
        "create_event_source_mapping",
        FunctionName=constant(f"demo-{OUR_MARK}"),
        EventSourceArn=constant("arn:aws:sqs:us-east-1:000000000000:demo-none"),
    ),
}


def expected_calls(**by_subject: str) -> set[str]:
    """Return the calls of comma-separated operations by subject; `_` in a subject is a space."""
    return {
        f"{subject.replace('_', ' ')}: {what}"
        for subject, operations in by_subject.items()
        for what in operations.split(", ")
    }
