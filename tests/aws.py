"""AWS in this process (moto), with the tables as the stacks make them: fixtures for the suites that import them."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

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
    return _table("Rendezvous", {"pk": TEXT, "sk": TEXT}, index=("open_offers", {"pool": TEXT, "available_at": NUMBER}))


@pytest.fixture
def lease_table(aws: None):
    return _table("Leases", {"queue_name": TEXT}, index=("by_expiry", {"capability": TEXT, "due_at": NUMBER}))


@pytest.fixture
def sqs(aws: None):
    return boto3.client("sqs")


def _table(name: str, key: dict[str, str], *, index: tuple[str, dict[str, str]]):
    index_name, index_key = index
    return boto3.resource("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in (key | index_key).items()],
        KeySchema=_schema(key),
        GlobalSecondaryIndexes=[
            {"IndexName": index_name, "KeySchema": _schema(index_key), "Projection": {"ProjectionType": "ALL"}}
        ],
    )


def _schema(key: dict[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": n, "KeyType": kind} for n, kind in zip(key, ("HASH", "RANGE"), strict=False)]
