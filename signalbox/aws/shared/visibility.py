"""Changes of the visibility time-out of received messages."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

Value = TypeVar("Value")


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


def tens(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield values in parts that one call of SQS takes."""
    for start in range(0, len(values), MAXIMUM_ENTRIES):
        yield values[start : start + MAXIMUM_ENTRIES]
