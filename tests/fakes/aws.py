"""Fixtures for AWS in this process (moto), with the tables that the stacks define."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.awslambda.models import LambdaBackend
from moto.sqs.exceptions import QueueAlreadyExists
from moto.sqs.models import SQSBackend, sqs_backends

from signalbox.aws.shared.dynamodb import BY_KIND_INDEX, DynamoTable
from signalbox.aws.shared.leases import BY_EXPIRY_INDEX
from signalbox.clients.deployment import LocalDeployment
from tests.java.parts import Parts

REGION = "us-east-1"
TEXT, NUMBER = "S", "N"
# What a test of an adapter runs on: moto, and DynamoDB Local with ElasticMQ.
BACKENDS = ("moto", pytest.param("java", marks=pytest.mark.java))
STORES = ("memory", *BACKENDS)  # what a test of a port runs on: the fake, and the adapter on both


# The default session of all tests: each session reads the descriptions of the services anew.
SESSION = boto3.Session()
KEEP_SESSION = {"core": {"reset_boto3_session": False}}


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
    monkeypatch.setattr(SQSBackend, "create_queue", _refusing_other_tags(SQSBackend.create_queue))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", SESSION)
    with mock_aws(config=KEEP_SESSION):
        yield
    if parts:
        parts.clear()


def _refusing_other_tags(create: Callable[..., Any]) -> Callable[..., Any]:
    """Return moto's creation of a queue, which refuses an existing one with other tags, as SQS does."""

    def created(self: SQSBackend, name: str, tags: dict[str, str] | None = None, **attributes: Any) -> object:
        existing = self.queues.get(name)
        if existing is not None and tags and tags != existing.tags:
            raise QueueAlreadyExists("A queue already exists with the same name and a different value for tags")
        return create(self, name, tags, **attributes)

    return created


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


class RawTable(DynamoTable):
    """A table that has also the calls of boto3's `Table`, for what only tests do."""

    def __getattr__(self, name: str) -> Any:
        if "raw" not in self.__dict__:
            object.__setattr__(self, "raw", boto3.resource("dynamodb").Table(self.name))
        return getattr(self.__dict__["raw"], name)


@pytest.fixture
def rendezvous_table(aws: None):
    return _raw(_table("Rendezvous", {"pk": TEXT, "sk": TEXT}))


@pytest.fixture
def lease_table(aws: None):
    index = (BY_EXPIRY_INDEX, {"capability": TEXT, "due_at": NUMBER}, ("queue_url",))
    return _raw(_table("Leases", {"queue_name": TEXT}, index=index))


def _raw(table: Any) -> RawTable:
    return RawTable(boto3.client("dynamodb"), table.name)


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
    return _raw(_table("Live", {"pk": TEXT, "sk": TEXT}))


@pytest.fixture
def sqs(aws: None):
    return boto3.client("sqs")


def _table_of_kinds(name: str) -> RawTable:
    return _raw(_table(name, {"pk": TEXT, "sk": TEXT}, index=(BY_KIND_INDEX, {"kind": TEXT, "pk": TEXT}, None)))


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


def local_stage(outputs: Mapping[str, str], folder: Path, *, region: str = REGION) -> LocalDeployment:
    """Return a local stage whose emulator is moto."""
    keys = {"access_key_id": "testing", "secret_access_key": "testing"}
    return LocalDeployment(outputs, region, "", None, folder, administrator=keys)  # type: ignore[arg-type]
