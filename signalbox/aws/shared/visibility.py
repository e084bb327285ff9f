"""Changes of the visibility time-out of received messages."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

Value = TypeVar("Value")

logger = logging.getLogger(__name__)


def change_visibility(sqs: "SQSClient", queue_url: str, receipts: Sequence[str], *, seconds: int) -> None:
    """Hide messages for a time from now on, or show them at once for 0, by their receipt handles.

    Needs sqs:ChangeMessageVisibility; raises the client's errors. SQS ignores receipts that are no longer valid.
    """
    for part in tens(receipts):
        sqs.change_message_visibility_batch(
            QueueUrl=queue_url,
            Entries=[
                {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": seconds}
                for number, receipt in enumerate(part)
            ],
        )


def hide(sqs: "SQSClient", queue_url: str, pauses: Mapping[str, timedelta]) -> None:
    """Hide at most ten messages, by receipt handle, for these times from now on, in one call.

    A failure is only logged: the message was deleted, or comes again after the visibility timeout of its queue.
    """
    entries = [
        {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": round(pause.total_seconds())}
        for number, (receipt, pause) in enumerate(pauses.items())
    ]
    try:
        answer = sqs.change_message_visibility_batch(QueueUrl=queue_url, Entries=entries)  # type: ignore[arg-type]
    except (ClientError, BotoCoreError):
        logger.exception("%d messages keep the visibility timeout of %s", len(entries), queue_url)
        return
    for failed in answer.get("Failed", ()):
        logger.info("a message keeps the visibility timeout of %s: %s", queue_url, failed["Code"])


def tens(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield values in parts that one call of SQS takes."""
    for start in range(0, len(values), MAXIMUM_ENTRIES):
        yield values[start : start + MAXIMUM_ENTRIES]
