"""A consumer for a laptop: prints the messages of the queue that `signalbox split run` gives it, until interrupted.

Usage: consumer.py [VARIABLE], the environment variable with the queue's name or URL; default DEMO_MEMES_QUEUE.
"""

import os
import sys

import boto3


def main() -> None:
    """Receive, print and delete messages."""
    variable = sys.argv[1] if len(sys.argv) > 1 else "DEMO_MEMES_QUEUE"
    queue = os.environ[variable]
    sqs = boto3.client("sqs")
    url = queue if queue.startswith("http") else sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    print("reads", queue, flush=True)
    while True:
        received = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MessageAttributeNames=["All"])
        for message in received.get("Messages", ()):
            print("got", message["Body"], flush=True)
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
