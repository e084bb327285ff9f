"""The permissions of rendezvous' identities on the deployed stage, as a table that the emulator enforces.

The permissions in the templates are tested in tests/infrastructure/test_permissions.py.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from tests.integration.rendezvous.peers import Parties, wait_for
from tests.integration.shared import permission_checks
from tests.integration.shared.permission_checks import KEY_ITSELF, STAGE_CALLS, Call, api_call, assumed_role, constant

pytestmark = [pytest.mark.emulator, pytest.mark.release]


@dataclass(frozen=True, slots=True)
class Resources:
    """What the calls are about; the client queue is a fresh one."""

    outputs: Mapping[str, str]
    client_queue: str
    function: str
    key: str

    @property
    def prefix(self) -> str:
        return self.outputs["ClientQueuePrefix"]

    @property
    def broker(self) -> str:
        return self.outputs["BrokerQueueUrl"]

    @property
    def dead_letters(self) -> str:
        return self.outputs["DeadLetterQueueUrl"]

    @property
    def table(self) -> str:
        return self.outputs["RendezvousTable"]

    @property
    def leases(self) -> str:
        return self.outputs["LeaseTable"]


NOBODY = {"S": "nobody"}
POOL = {":pool": NOBODY}


def _sqs(operation: str, **arguments: Callable[[Resources], object]) -> Call:
    return api_call("sqs", operation, **arguments)


ITEM = {"TableName": lambda p: p.table, "Key": constant({"pk": NOBODY, "sk": NOBODY})}
LEASE = {"TableName": lambda p: p.leases, "Key": constant({"queue_name": NOBODY})}
CALLS: dict[str, Call] = {
    "send to the broker queue": _sqs("send_message", QueueUrl=lambda p: p.broker, MessageBody=constant("1.0")),
    "receive from the broker queue": _sqs(
        "receive_message", QueueUrl=lambda p: p.broker, VisibilityTimeout=constant(0)
    ),
    "delete from the broker queue": _sqs("delete_message", QueueUrl=lambda p: p.broker, ReceiptHandle=constant("none")),
    "hold back in the broker queue": _sqs(
        "change_message_visibility",
        QueueUrl=lambda p: p.broker,
        ReceiptHandle=constant("none"),
        VisibilityTimeout=constant(0),
    ),
    "look at the broker queue": _sqs(
        "get_queue_attributes", QueueUrl=lambda p: p.broker, AttributeNames=constant(["QueueArn"])
    ),
    "find the broker queue": _sqs("get_queue_url", QueueName=lambda p: p.outputs["BrokerQueueName"]),
    "make the broker queue": _sqs("create_queue", QueueName=lambda p: p.outputs["BrokerQueueName"]),
    "empty the broker queue": _sqs("purge_queue", QueueUrl=lambda p: p.broker),
    "send a dead letter": _sqs("send_message", QueueUrl=lambda p: p.dead_letters, MessageBody=constant("by a test")),
    "receive dead letters": _sqs("receive_message", QueueUrl=lambda p: p.dead_letters, VisibilityTimeout=constant(0)),
    "find the dead-letter queue": _sqs("get_queue_url", QueueName=lambda p: p.dead_letters.rpartition("/")[2]),
    "make a client queue": _sqs("create_queue", QueueName=lambda p: f"{p.prefix}{secrets.token_hex(8)}"),
    "make another queue": _sqs("create_queue", QueueName=constant("another")),
    "tag a client queue": _sqs("tag_queue", QueueUrl=lambda p: p.client_queue, Tags=constant({"a": "b"})),
    "read a client queue's tags": _sqs("list_queue_tags", QueueUrl=lambda p: p.client_queue),
    "find a client queue": _sqs("get_queue_url", QueueName=lambda p: p.client_queue.rpartition("/")[2]),
    "look at a client queue": _sqs(
        "get_queue_attributes", QueueUrl=lambda p: p.client_queue, AttributeNames=constant(["QueueArn"])
    ),
    "send to a client queue": _sqs("send_message", QueueUrl=lambda p: p.client_queue, MessageBody=constant("reply")),
    "receive from a client queue": _sqs("receive_message", QueueUrl=lambda p: p.client_queue),
    "change a client queue": _sqs(
        "set_queue_attributes", QueueUrl=lambda p: p.client_queue, Attributes=constant({"DelaySeconds": "0"})
    ),
    "delete a client queue": _sqs("delete_queue", QueueUrl=lambda p: p.client_queue),
    "read a record": api_call("dynamodb", "get_item", **ITEM),
    "write a record": api_call(
        "dynamodb", "put_item", TableName=lambda p: p.table, Item=constant({"pk": NOBODY, "sk": NOBODY})
    ),
    "change a record": api_call("dynamodb", "update_item", **ITEM),
    "delete a record": api_call("dynamodb", "delete_item", **ITEM),
    "query open offers": api_call(
        "dynamodb",
        "query",
        TableName=lambda p: p.table,
        IndexName=constant("open_offers"),
        KeyConditionExpression=constant("pool = :pool"),
        ExpressionAttributeValues=constant(POOL),
    ),
    "scan the records": api_call("dynamodb", "scan", TableName=lambda p: p.table),
    "read a lease": api_call("dynamodb", "get_item", **LEASE),
    "write a lease": api_call(
        "dynamodb", "put_item", TableName=lambda p: p.leases, Item=constant({"queue_name": NOBODY})
    ),
    "delete a lease": api_call("dynamodb", "delete_item", **LEASE),
    "call a function": api_call(
        "lambda", "invoke", FunctionName=lambda p: p.function, Payload=constant(b'{"task":"leases"}')
    ),
    **STAGE_CALLS,
}

RECORDS = {"read a record", "write a record", "change a record", "delete a record", "query open offers"}
ALLOWED: dict[str, set[str]] = {
    # The client's key is public by design: everyone has the permissions listed here.
    "client user": {"send to the broker queue", "find a client queue", "receive from a client queue"},
    "offer": RECORDS
    | {
        "receive from the broker queue",
        "delete from the broker queue",
        "hold back in the broker queue",
        "look at the broker queue",
        "send a dead letter",
        "make a client queue",
        "tag a client queue",
        "find a client queue",
        "look at a client queue",
        "send to a client queue",
        "write history",
    },
    "poll": RECORDS | {"write history"},
    "answer": RECORDS | {"send to a client queue", "delete from the broker queue", "write history"},
    "client": RECORDS | {"write history"},
    "page": {"read a record", "query open offers"},
    "sweep": {
        "query open offers",  # the ended ones are in another partition of the same index
        "look at the broker queue",
        "find the broker queue",
        "make the broker queue",
        "look at a client queue",
        "read a client queue's tags",
        "delete a client queue",
        "list queues",
        "read a lease",
        "write a lease",
        "delete a lease",
        "write history",
    },
}


@pytest.fixture(scope="module")
def functions(all_parties: Parties) -> dict[str, Any]:
    """Return the functions by the names of their handlers."""
    return permission_checks.functions_of(all_parties.deployment, "rendezvous")


@contextmanager
def identity(parties: Parties, name: str, functions: Mapping[str, Any]) -> Iterator[boto3.Session]:
    if name == "client user":
        yield parties.client_session
        return
    with assumed_role(parties.deployment, functions[name]["Role"]) as session:
        yield session


def _resources(parties: Parties, functions: Mapping[str, Any]) -> Resources:
    outputs = parties.deployment.outputs
    queue = parties.sqs.create_queue(QueueName=f"{outputs['ClientQueuePrefix']}{secrets.token_hex(8)}")["QueueUrl"]
    key = permission_checks.key_of(parties.deployment, outputs["BrokerQueueUrl"])
    return Resources(outputs, queue, functions["sweep"]["FunctionName"], key)


@pytest.mark.parametrize("name", ALLOWED)
def test_an_identity_has_exactly_the_permissions_of_the_table(all_parties: Parties, functions, name: str):
    resources = _resources(all_parties, functions)

    with identity(all_parties, name, functions) as session:
        allowed = permission_checks.allowed(CALLS, session, resources)

    assert allowed == ALLOWED[name]


def test_every_function_is_in_the_table(functions):
    assert functions.keys() | {"client user"} == ALLOWED.keys()


def test_the_administrator_is_refused_nothing_but_the_key_itself(all_parties: Parties, functions):
    """A refusal of another identity is therefore its own. Every identity uses keys through services only."""
    resources = _resources(all_parties, functions)

    refused = permission_checks.refused_to_administrator(
        CALLS, all_parties.deployment, resources, without={"empty the broker queue"}
    )

    assert refused == {KEY_ITSELF}


@pytest.fixture(autouse=True, scope="module")
def tidy(all_parties: Parties) -> Iterator[None]:
    """Delete the resources that the allowed calls have created."""
    yield
    outputs = all_parties.deployment.outputs
    prefix = outputs["ClientQueuePrefix"]
    for url in all_parties.sqs.list_queues(QueueNamePrefix=prefix).get("QueueUrls", []):
        tags = all_parties.sqs.list_queue_tags(QueueUrl=url).get("Tags", {})
        if "signalbox:stage" not in tags:
            all_parties.sqs.delete_queue(QueueUrl=url)
    with suppress(all_parties.sqs.exceptions.QueueDoesNotExist):
        all_parties.sqs.delete_queue(QueueUrl=all_parties.sqs.get_queue_url(QueueName="another")["QueueUrl"])
    all_parties.table.delete_item(Key={"pk": "nobody", "sk": "nobody"})
    wait_for(lambda: all_parties.waiting_messages() == 0, "the clients' messages taken")
    url = outputs["DeadLetterQueueUrl"]
    for one in all_parties.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        all_parties.sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
