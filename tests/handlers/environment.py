"""What stands around every handler: a lake to write to, settings in the environment, nothing left of other tests."""

import json
from types import ModuleType
from typing import Any

import boto3

from lambdas.shared import history as writing
from tests.fakes.aws import REGION
from tests.handlers.recorded_events import ACCOUNT

STREAM, BUCKET = "events", "history"
OVERFLOW = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/overflow"


def create_history_stream() -> Any:
    """Make the delivery stream and its bucket; return a client of S3."""
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
    """Return the events that were written, in the order in which they happened."""
    objects = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    texts = [s3.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read().decode() for one in objects]
    events = [json.loads(line) for text in texts for line in text.splitlines()]
    return sorted(events, key=lambda event: event.get("occurred_at", ""))  # what is drained may be any lines


def dead_letter_reason(letter: dict[str, Any]) -> str:
    """Return why a message was put aside, of a dead letter as SQS's client has it."""
    return str(letter["MessageAttributes"]["Reason"]["StringValue"])


def clear_caches(*modules: ModuleType) -> None:
    """Make functions cold: what is made once for an instance belongs to the AWS of one test."""
    for module in (*modules, writing):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
