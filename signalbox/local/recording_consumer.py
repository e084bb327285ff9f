"""The function of the demo's deployed consumer: it writes down what it gets, and when.

It is put alone into its package, as `index.py`.
"""

import os
import time
from typing import Any

import boto3

TABLE = boto3.resource("dynamodb").Table(os.environ["RECORD_TABLE"])


def handler(event: dict[str, Any], _context: object) -> None:
    """Take a batch of messages."""
    with TABLE.batch_writer() as batch:
        for record in event["Records"]:
            queue = record["eventSourceARN"].rpartition(":")[2]
            # Each receipt is an item of its own, so that a message that came twice is seen twice.
            key = f"{time.time_ns()}#{record['messageId']}"
            batch.put_item(Item={"pk": key, "body": record["body"], "queue": queue})
