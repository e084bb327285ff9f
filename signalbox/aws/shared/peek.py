"""Messages of an SQS queue, read without being taken out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from signalbox.aws.shared.visibility import change_visibility
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

HELD_SECONDS = 60  # more than reading a queue takes


def peek(sqs: "SQSClient", queue_url: str, *, most: int) -> "Iterator[MessageTypeDef]":
    """Yield about `most` messages of a queue, at most nine more, with all attributes, and make them visible again.

    Each counts as received, and expires no later for that. Of a FIFO queue, SQS returns at most ten messages of a
    group. Needs sqs:ReceiveMessage and sqs:ChangeMessageVisibility on the queue; raises the client's errors.
    """
    receipts: list[str] = []
    try:
        for some in _received(sqs, queue_url):
            receipts += [one["ReceiptHandle"] for one in some]
            yield from some
            if len(receipts) >= most:
                break
    finally:
        change_visibility(sqs, queue_url, receipts, seconds=0)


def _received(sqs: "SQSClient", queue_url: str) -> "Iterator[list[MessageTypeDef]]":
    while True:
        reply = sqs.receive_message(
            QueueUrl=queue_url,
            MaxNumberOfMessages=MAXIMUM_ENTRIES,
            VisibilityTimeout=HELD_SECONDS,
            WaitTimeSeconds=1,  # a long poll queries all servers of SQS
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        if not reply.get("Messages"):
            return
        yield reply["Messages"]
