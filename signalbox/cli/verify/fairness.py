"""Fair queues: how many messages of a noisy group reach the consumers before those of a quiet one."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

NOISY, QUIET = "noisy", "quiet"
BURST, IN_WORK, LATE = 200, 50, 5
"""The numbers of messages of the burst, of its messages in flight before the quiet group sends, and of that group.

SQS counts a group as noisy with more than a tenth of the messages in flight, and at least 30.
"""
EMPTY_RECEIVES = 5
VISIBILITY_SECONDS = 300  # longer than the measurement, so that no message comes twice


def overtaken(sqs: "SQSClient", queue_url: str) -> int:
    """Send a noisy burst, then quiet messages; return how many messages of the burst arrive before the last quiet one.

    Without fair queues these are all that wait: `BURST` minus `IN_WORK`. The messages stay in the queue.
    """
    _send(sqs, queue_url, NOISY, BURST)
    groups = _groups(sqs, queue_url)
    list(islice(groups, IN_WORK))
    _send(sqs, queue_url, QUIET, LATE)
    before, left = 0, LATE
    for group in groups:
        left -= group == QUIET
        before += group == NOISY
        if not left:
            break
    return before


def _send(sqs: "SQSClient", queue_url: str, group: str, count: int) -> None:
    for start in range(0, count, MAXIMUM_ENTRIES):
        numbers = range(start, min(start + MAXIMUM_ENTRIES, count))
        sqs.send_message_batch(
            QueueUrl=queue_url,
            Entries=[{"Id": str(number), "MessageBody": group, "MessageGroupId": group} for number in numbers],
        )


def _groups(sqs: "SQSClient", queue_url: str) -> Iterator[str]:
    """Receive one message after another until the queue seems empty; yield their groups, which are their bodies."""
    empty = 0
    while empty < EMPTY_RECEIVES:
        found = sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=1, WaitTimeSeconds=2, VisibilityTimeout=VISIBILITY_SECONDS
        ).get("Messages", [])
        empty = 0 if found else empty + 1
        yield from (one["Body"] for one in found)
