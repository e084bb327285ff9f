"""Fixtures for AWS in this process (moto), with the tables that the stacks define."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import boto3
import moto.core.models
import moto.core.responses
import moto.sqs.models
import pytest
from botocore.model import StructureShape
from moto import mock_aws
from moto.awslambda.models import LambdaBackend
from moto.core.serialize import JSONSerializer
from moto.sqs.models import sqs_backends

from signalbox.aws.rendezvous.offers import LISTED, OPEN_OFFERS_INDEX
from signalbox.aws.shared.leases import BY_EXPIRY_INDEX
from signalbox.aws.shared.table import DynamoTable, plain_item
from signalbox.aws.splitting.splits import BY_KIND_INDEX
from tests.java.parts import Parts

REGION = "us-east-1"
TEXT, NUMBER = "S", "N"
# What a test of an adapter runs on: moto, and DynamoDB Local with ElasticMQ.
BACKENDS = ("moto", pytest.param("java", marks=pytest.mark.java))
STORES = ("memory", *BACKENDS)  # what a test of a port runs on: the fake, and the adapter on both


def _of_one_kind(serialize: Callable[..., None]) -> Callable[..., None]:
    """Return moto's structure serializer without the search for the nine absent types of a DynamoDB value.

    With coverage measured, a test over many items spends a third of its time on that search.
    """

    def serialized(self: JSONSerializer, into: dict[str, Any], value: object, shape: StructureShape, key: str) -> None:
        if shape.name != "AttributeValue" or not isinstance(value, dict) or len(value) != 1 or not key:
            serialize(self, into, value, shape, key)
            return
        ((kind, content),) = value.items()
        value_document: dict[str, Any] = {}
        self._serialize(value_document, content, shape.members[kind], kind)
        self._default_serialize(into, value_document, shape, key)

    return serialized


# moto begins each test with a thousand responses to `requests`, the same in each.
moto.core.models.CallbackResponse = cache(moto.core.models.CallbackResponse)  # type: ignore[assignment, misc]
# For each call, moto derives the name of its method anew, and looks it up among the sorted members of a class.
for module in (moto.core.responses, moto.sqs.models):
    module.camelcase_to_underscores = cache(module.camelcase_to_underscores)  # type: ignore[attr-defined]
moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)  # type: ignore[attr-defined]
JSONSerializer._serialize_type_structure = _of_one_kind(JSONSerializer._serialize_type_structure)  # type: ignore[method-assign]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Replace AWS by moto, with fake credentials and the default region.

    In a test with the marker `java`, DynamoDB and SQS are DynamoDB Local and ElasticMQ.
    """
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    parts = request.getfixturevalue("real_parts") if request.node.get_closest_marker("java") else None
    for name, url in (parts.variables if parts else {}).items():
        monkeypatch.setenv(name, url)
    if parts:
        mapped = _with_queues_of(parts, LambdaBackend.create_event_source_mapping)
        monkeypatch.setattr(LambdaBackend, "create_event_source_mapping", mapped)
    with mock_aws():
        yield
    if parts:
        parts.clear()


def _with_queues_of(parts: Parts, create: Callable[..., Any]) -> Callable[..., Any]:
    """Return moto's creation of an event source mapping, which finds the queues of ElasticMQ, too.

    moto's Lambda reads nothing from queues here: it only needs a queue of the same name in moto's own SQS.
    """

    def created(self: LambdaBackend, spec: dict[str, Any]) -> object:
        name, known = spec["EventSourceArn"].rpartition(":")[2], sqs_backends[self.account_id][self.region_name]
        if parts.has_queue(name) and name not in known.queues:
            known.create_queue(name, None, **({"FifoQueue": "true"} if name.endswith(".fifo") else {}))
        return create(self, spec)

    return created


class ScannedTable(DynamoTable):
    """A table with what only tests do."""

    __slots__ = ()

    def scan(self) -> dict[str, Any]:
        """Return all items under the name `Items`."""
        return {"Items": [plain_item(item) for item in self.client.scan(TableName=self.name)["Items"]]}

    def delete(self) -> None:
        """Delete the table."""
        self.client.delete_table(TableName=self.name)

    @property
    def key_schema(self) -> Any:
        """The attributes of the key."""
        return self.client.describe_table(TableName=self.name)["Table"]["KeySchema"]


@pytest.fixture
def rendezvous_table(aws: None):
    index = (OPEN_OFFERS_INDEX, {"pool": TEXT, "available_at": NUMBER}, LISTED)
    _table("Rendezvous", {"pk": TEXT, "sk": TEXT}, index=index)
    return ScannedTable(boto3.client("dynamodb"), "Rendezvous")


@pytest.fixture
def lease_table(aws: None):
    index = (BY_EXPIRY_INDEX, {"capability": TEXT, "due_at": NUMBER}, ("queue_url",))
    return _table("Leases", {"queue_name": TEXT}, index=index)


@pytest.fixture
def split_table(aws: None):
    return make_split_table()


def make_split_table():
    """Create the table of splits in the default region."""
    return _table_of_kinds("Splits")


@pytest.fixture
def exchange_table(aws: None):
    return make_exchange_table()


def make_exchange_table():
    """Create the table of exchanges in the default region."""
    return _table_of_kinds("Exchanges")


@pytest.fixture
def live_table(aws: None):
    return _table("Live", {"pk": TEXT, "sk": TEXT})


@pytest.fixture
def sqs(aws: None):
    return boto3.client("sqs")


def _table_of_kinds(name: str):
    return _table(name, {"pk": TEXT, "sk": TEXT}, index=(BY_KIND_INDEX, {"kind": TEXT, "pk": TEXT}, None))


def _table(name: str, key: dict[str, str], *, index: tuple[str, dict[str, str], tuple[str, ...] | None] | None = None):
    index_name, index_key, listed = index or ("", {}, None)
    projection = (
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(listed)} if listed else {"ProjectionType": "ALL"}
    )
    secondary = {"IndexName": index_name, "KeySchema": _schema(index_key), "Projection": projection}
    return boto3.resource("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in (key | index_key).items()],
        KeySchema=_schema(key),
        **({"GlobalSecondaryIndexes": [secondary]} if index else {}),
    )


def _schema(key: dict[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": n, "KeyType": kind} for n, kind in zip(key, ("HASH", "RANGE"), strict=False)]
