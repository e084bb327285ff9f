"""Who may do what of rendezvous on the deployed stage, as a table.

What a template says about permissions is in tests/infrastructure/test_permissions.py; here the emulator enforces it.
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
from tests.integration.shared.permission_checks import KEY_ITSELF, STAGE_CALLS, Call, assumed_role, calling, just

pytestmark = pytest.mark.emulator


@dataclass(frozen=True, slots=True)
class Place:
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


def _sqs(operation: str, **arguments: Callable[[Place], object]) -> Call:
    return calling("sqs", operation, **arguments)


ITEM = {"TableName": lambda p: p.table, "Key": just({"pk": NOBODY, "sk": NOBODY})}
LEASE = {"TableName": lambda p: p.leases, "Key": just({"queue_name": NOBODY})}
CALLS: dict[str, Call] = {
    "send to the broker queue": _sqs("send_message", QueueUrl=lambda p: p.broker, MessageBody=just("1.0")),
    "receive from the broker queue": _sqs("receive_message", QueueUrl=lambda p: p.broker, VisibilityTimeout=just(0)),
    "delete from the broker queue": _sqs("delete_message", QueueUrl=lambda p: p.broker, ReceiptHandle=just("none")),
    "hold back in the broker queue": _sqs(
        "change_message_visibility",
        QueueUrl=lambda p: p.broker,
        ReceiptHandle=just("none"),
        VisibilityTimeout=just(0),
    ),
    "look at the broker queue": _sqs(
        "get_queue_attributes", QueueUrl=lambda p: p.broker, AttributeNames=just(["QueueArn"])
    ),
    "find the broker queue": _sqs("get_queue_url", QueueName=lambda p: p.outputs["BrokerQueueName"]),
    "make the broker queue": _sqs("create_queue", QueueName=lambda p: p.outputs["BrokerQueueName"]),
    "empty the broker queue": _sqs("purge_queue", QueueUrl=lambda p: p.broker),
    "send a dead letter": _sqs("send_message", QueueUrl=lambda p: p.dead_letters, MessageBody=just("by a test")),
    "receive dead letters": _sqs("receive_message", QueueUrl=lambda p: p.dead_letters, VisibilityTimeout=just(0)),
    "find the dead-letter queue": _sqs("get_queue_url", QueueName=lambda p: p.dead_letters.rpartition("/")[2]),
    "make a client queue": _sqs("create_queue", QueueName=lambda p: f"{p.prefix}{secrets.token_hex(8)}"),
    "make another queue": _sqs("create_queue", QueueName=just("another")),
    "tag a client queue": _sqs("tag_queue", QueueUrl=lambda p: p.client_queue, Tags=just({"a": "b"})),
    "read a client queue's tags": _sqs("list_queue_tags", QueueUrl=lambda p: p.client_queue),
    "find a client queue": _sqs("get_queue_url", QueueName=lambda p: p.client_queue.rpartition("/")[2]),
    "look at a client queue": _sqs(
        "get_queue_attributes", QueueUrl=lambda p: p.client_queue, AttributeNames=just(["QueueArn"])
    ),
    "send to a client queue": _sqs("send_message", QueueUrl=lambda p: p.client_queue, MessageBody=just("reply")),
    "receive from a client queue": _sqs("receive_message", QueueUrl=lambda p: p.client_queue),
    "change a client queue": _sqs(
        "set_queue_attributes", QueueUrl=lambda p: p.client_queue, Attributes=just({"DelaySeconds": "0"})
    ),
    "delete a client queue": _sqs("delete_queue", QueueUrl=lambda p: p.client_queue),
    "read a record": calling("dynamodb", "get_item", **ITEM),
    "write a record": calling(
        "dynamodb", "put_item", TableName=lambda p: p.table, Item=just({"pk": NOBODY, "sk": NOBODY})
    ),
    "change a record": calling("dynamodb", "update_item", **ITEM),
    "delete a record": calling("dynamodb", "delete_item", **ITEM),
    "query open offers": calling(
        "dynamodb",
        "query",
        TableName=lambda p: p.table,
        IndexName=just("open_offers"),
        KeyConditionExpression=just("pool = :pool"),
        ExpressionAttributeValues=just(POOL),
    ),
    "scan the records": calling("dynamodb", "scan", TableName=lambda p: p.table),
    "read a lease": calling("dynamodb", "get_item", **LEASE),
    "write a lease": calling("dynamodb", "put_item", TableName=lambda p: p.leases, Item=just({"queue_name": NOBODY})),
    "delete a lease": calling("dynamodb", "delete_item", **LEASE),
    "call a function": calling(
        "lambda", "invoke", FunctionName=lambda p: p.function, Payload=just(b'{"task":"leases"}')
    ),
    **STAGE_CALLS,
}

RECORDS = {"read a record", "write a record", "change a record", "delete a record", "query open offers"}
ALLOWED: dict[str, set[str]] = {
    # Public by design: nothing may ever be added here without a thought about the whole world having it.
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
        "read a lease",
        "write a lease",
        "write history",
    },
    "poll": RECORDS | {"write history"},
    "answer": RECORDS | {"send to a client queue", "delete from the broker queue", "write history"},
    "client": RECORDS | {"write history"},
    "page": {"read a record", "query open offers"},
    "sweep": {
        "look at the broker queue",
        "find the broker queue",
        "make the broker queue",
        "look at a client queue",
        "read a client queue's tags",
        "delete a client queue",
        "list queues",
        "read a lease",
        "delete a lease",
        "write history",
    },
}


@pytest.fixture(scope="module")
def functions(everybody: Parties) -> dict[str, Any]:
    """The functions by the names of their handlers."""
    return permission_checks.functions_of(everybody.deployment, "rendezvous")


@contextmanager
def identity(parties: Parties, name: str, functions: Mapping[str, Any]) -> Iterator[boto3.Session]:
    if name == "client user":
        yield parties.client_session
        return
    with assumed_role(parties.deployment, functions[name]["Role"]) as session:
        yield session


def _place(parties: Parties, functions: Mapping[str, Any]) -> Place:
    outputs = parties.deployment.outputs
    queue = parties.sqs.create_queue(QueueName=f"{outputs['ClientQueuePrefix']}{secrets.token_hex(8)}")["QueueUrl"]
    key = permission_checks.key_of(parties.deployment, outputs["BrokerQueueUrl"])
    return Place(outputs, queue, functions["sweep"]["FunctionName"], key)


@pytest.mark.parametrize("name", ALLOWED)
def test_an_identity_may_do_what_the_table_says_and_nothing_else(everybody: Parties, functions, name: str):
    place = _place(everybody, functions)

    with identity(everybody, name, functions) as session:
        allowed = permission_checks.allowed(CALLS, session, place)

    assert allowed == ALLOWED[name]


def test_every_function_is_in_the_table(functions):
    assert functions.keys() | {"client user"} == ALLOWED.keys()


def test_the_administrator_is_refused_nothing_but_the_key_itself(everybody: Parties, functions):
    """So a refusal above has no other cause than the identity. Keys are used through services only, by everybody."""
    place = _place(everybody, functions)

    refused = permission_checks.refused_to_administrator(
        CALLS, everybody.deployment, place, without={"empty the broker queue"}
    )

    assert refused == {KEY_ITSELF}


@pytest.fixture(autouse=True, scope="module")
def tidy(everybody: Parties) -> Iterator[None]:
    """Take away what the calls that are allowed have made."""
    yield
    outputs = everybody.deployment.outputs
    prefix = outputs["ClientQueuePrefix"]
    for url in everybody.sqs.list_queues(QueueNamePrefix=prefix).get("QueueUrls", []):
        tags = everybody.sqs.list_queue_tags(QueueUrl=url).get("Tags", {})
        if "signalbox:stage" not in tags:
            everybody.sqs.delete_queue(QueueUrl=url)
    with suppress(everybody.sqs.exceptions.QueueDoesNotExist):
        everybody.sqs.delete_queue(QueueUrl=everybody.sqs.get_queue_url(QueueName="another")["QueueUrl"])
    everybody.table.delete_item(Key={"pk": "nobody", "sk": "nobody"})
    wait_for(lambda: everybody.waiting_messages() == 0, "the clients' messages taken")
    for letter in everybody.sqs.receive_message(QueueUrl=outputs["DeadLetterQueueUrl"], MaxNumberOfMessages=10).get(
        "Messages", []
    ):
        everybody.sqs.delete_message(QueueUrl=outputs["DeadLetterQueueUrl"], ReceiptHandle=letter["ReceiptHandle"])
