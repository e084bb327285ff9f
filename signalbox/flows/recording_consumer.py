"""The Lambda function of the demo's deployed consumer, which records each message and its time in a table.

This file alone is the function's package, as `index.py`.
"""

import os
import time
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import botocore
import urllib3

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


def handler(event: dict[str, Any], _context: object) -> dict[str, str] | None:
    """Record a batch of messages; return the versions of the runtime's libraries for an event without one."""
    if "Records" not in event:
        return {module.__name__: module.__version__ for module in (boto3, botocore, urllib3)}
    with _table().batch_writer() as batch:
        for record in event["Records"]:
            queue = record["eventSourceARN"].rpartition(":")[2]
            # Each receipt is a separate item, so that a repeated message is recorded twice.
            key = f"{time.time_ns()}#{record['messageId']}"
            batch.put_item(Item={"pk": key, "body": record["body"], "queue": queue})
    return None


@cache
def _table() -> "Table":
    return boto3.resource("dynamodb").Table(os.environ["RECORD_TABLE"])
