"""Sends messages of two authors to a queue of the local stage that runs in this folder.

Usage: send.py [QUEUE], default demo-memes. The attribute `author` is what the filter in mirrord.json matches.
"""

import json
import sys
from pathlib import Path

import boto3


def main() -> None:
    """Send three messages of each author, as the stage's administrator."""
    stage = json.loads(Path(".signalbox", "local.json").read_text())
    keys = stage["admin_credentials"]
    sqs = boto3.client(
        "sqs",
        endpoint_url=stage["endpoint_url"],
        region_name=stage["region"],
        aws_access_key_id=keys["access_key_id"],
        aws_secret_access_key=keys["secret_access_key"],
    )
    queue = sys.argv[1] if len(sys.argv) > 1 else "demo-memes"
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    for author in ("ann", "bob") * 3:
        attributes = {"author": {"DataType": "String", "StringValue": author}}
        sqs.send_message(QueueUrl=url, MessageBody=f"by {author}", MessageAttributes=attributes)
    print("sent three messages of ann and three of bob to", queue)


if __name__ == "__main__":
    main()
