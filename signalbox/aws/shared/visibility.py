"""Changes of the visibility time-out of received messages."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

Value = TypeVar("Value")


def change_visibility(sqs: "SQSClient", queue_url: str, receipts: Sequence[str], *, seconds: int) -> list[str]:
    """Hide messages for a time from now on, or show them at once for 0, by their receipt handles.

    Return the receipts that SQS refuses for good. Needs sqs:ChangeMessageVisibility; raises the client's errors.
    """
    refused: list[str] = []
    for part in tens(receipts):
        reply = sqs.change_message_visibility_batch(
            QueueUrl=queue_url,
            Entries=[
                {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": seconds}
                for number, receipt in enumerate(part)
            ],
        )
        refused += [part[int(one["Id"])] for one in reply.get("Failed", ()) if one["SenderFault"]]
    return refused


def tens(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield values in parts that one call of SQS takes."""
    for start in range(0, len(values), MAXIMUM_ENTRIES):
        yield values[start : start + MAXIMUM_ENTRIES]
