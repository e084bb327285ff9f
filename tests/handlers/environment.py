"""Helpers for handler tests: the history stream, its events, and the caches of function instances."""

import json
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import boto3

from lambdas.shared import instance
from tests.fakes.aws import REGION
from tests.handlers.recorded_events import ACCOUNT

STREAM, BUCKET = "events", "history"
OVERFLOW = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/overflow"


@dataclass
class Context:
    """Lambda's context, with the time that the invocation has left."""

    remaining: int = 60_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining


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
