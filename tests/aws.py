"""AWS in this process (moto), with the tables as the stacks make them: fixtures for the suites that import them."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from signalbox.aws.leases import BY_EXPIRY_INDEX
from signalbox.aws.offers import LISTED, OPEN_OFFERS_INDEX
from signalbox.aws.splits import BY_KIND_INDEX

REGION = "us-east-1"
TEXT, NUMBER = "S", "N"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


@pytest.fixture
def rendezvous_table(aws: None):
    index = (OPEN_OFFERS_INDEX, {"pool": TEXT, "available_at": NUMBER}, LISTED)
    return _table("Rendezvous", {"pk": TEXT, "sk": TEXT}, index=index)


@pytest.fixture
def lease_table(aws: None):
    index = (BY_EXPIRY_INDEX, {"capability": TEXT, "due_at": NUMBER}, ("queue_url",))
    return _table("Leases", {"queue_name": TEXT}, index=index)


@pytest.fixture
def split_table(aws: None):
    return _table_of_kinds("Splits")


@pytest.fixture
def exchange_table(aws: None):
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
    beside = {"IndexName": index_name, "KeySchema": _schema(index_key), "Projection": projection}
    return boto3.resource("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in (key | index_key).items()],
        KeySchema=_schema(key),
        **({"GlobalSecondaryIndexes": [beside]} if index else {}),
    )


def _schema(key: dict[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": n, "KeyType": kind} for n, kind in zip(key, ("HASH", "RANGE"), strict=False)]
