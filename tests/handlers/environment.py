"""Helpers for handler tests: the history stream, its events, and the caches of function instances."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import boto3
import pytest

from lambdas.shared import instance
from tests.fakes.aws import REGION
from tests.handlers.recorded_events import ACCOUNT, Event

STREAM, BUCKET = "events", "history"
OVERFLOW = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/overflow"


@dataclass
class Context:
    """Lambda's context, with the milliseconds that the invocation has left."""

    remaining: int = 60_000
    invoked_function_arn: str = ""

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining


@dataclass
class Queues:
    """The queues of a stage, by their names."""

    sqs: Any
    urls: dict[str, str] = field(default_factory=dict)

    def make(self, name: str) -> str:
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        self.urls[name] = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return self.urls[name]

    def page(self, name: str, *, wait: int = 0) -> list[dict[str, Any]]:
        """Receive up to ten messages."""
        received = self.sqs.receive_message(
            QueueUrl=self.urls[name],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
            WaitTimeSeconds=wait,
        )
        return list(received.get("Messages", []))

    def messages(self, name: str) -> list[dict[str, Any]]:
        """Receive all messages."""
        found: list[dict[str, Any]] = []
        while page := self.page(name):
            found += page
        return found

    def bodies(self, name: str) -> list[str]:
        return [message["Body"] for message in self.messages(name)]

    def delete(self, name: str, handle: str) -> None:
        self.sqs.delete_message(QueueUrl=self.urls[name], ReceiptHandle=handle)

    def delete_handled(self, name: str, records: list[Event], response: dict[str, Any]) -> list[str]:
        """Delete the messages of a call that it has not reported, as Lambda does; return the ids of the others."""
        left = [failure["itemIdentifier"] for failure in response["batchItemFailures"]]
        for record in records:
            if record["messageId"] not in left:
                self.delete(name, record["receiptHandle"])
        return left


@contextmanager
def new_instances(monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str], *modules: ModuleType) -> Iterator[None]:
    """Set the variables of functions, whose instances are new at the beginning and forgotten at the end."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    clear_caches(*modules)
    yield
    clear_caches(*modules)


def create_history_stream() -> Any:
    """Create the delivery stream and its bucket; return an S3 client."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    boto3.client("firehose").create_delivery_stream(
        DeliveryStreamName=STREAM,
        ExtendedS3DestinationConfiguration={
            "RoleARN": f"arn:aws:iam::{ACCOUNT}:role/delivery",
            "BucketARN": f"arn:aws:s3:::{BUCKET}",
        },
    )
    return s3


def written_events(s3: Any) -> list[dict[str, Any]]:
    """Return the events in the history bucket, in the order of their `occurred_at`."""
    objects = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    keys = [one["Key"] for one in objects if not one["Key"].startswith("kept/")]  # messages, not events
    texts = [s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() for key in keys]
    events = [json.loads(line) for text in texts for line in text.splitlines()]
    return sorted(events, key=lambda event: event.get("occurred_at", ""))  # drained lines need not be events


def dead_letter_reason(message: dict[str, Any]) -> str:
    """Return the `Reason` attribute of a dead letter that boto3 has received."""
    return str(message["MessageAttributes"]["Reason"]["StringValue"])


def clear_caches(*modules: ModuleType) -> None:
    """Clear the caches of functions' modules, whose clients and settings belong to one test's moto."""
    for module in (*modules, instance):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
