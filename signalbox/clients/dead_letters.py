"""Dead letters of SQS queues, read without being taken out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.clients.visibility import change_visibility
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

HELD_SECONDS = 60  # more than reading a queue takes
# SQS gives the dead letter an id of its own: these attributes have that by which `signalbox trace` knows the message.
IDS = ("message_id", "OriginalMessageId")
NO_REASON = "its consumers received it as often as its queue allows, and did not delete it"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message of a dead-letter queue; `receives` counts those of its first queue, too, if SQS moved it."""

    message_id: str
    reason: str
    sent_at: datetime
    receives: int


def dead_letters(sqs: "SQSClient", queue_url: str, *, maximum: int) -> tuple[Sequence[DeadLetter], int]:
    """Return up to `maximum` dead letters of a queue, the oldest first, and how many it has.

    Of a FIFO queue, SQS returns at most ten messages of a group. Needs sqs:GetQueueAttributes, sqs:ReceiveMessage and
    sqs:ChangeMessageVisibility on the queue; raises the client's errors.
    """
    counted = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["ApproximateNumberOfMessages"])
    count = int(counted["Attributes"]["ApproximateNumberOfMessages"])
    if count == 0:
        return (), 0
    received: list[MessageTypeDef] = []
    try:
        for some in _received(sqs, queue_url):
            received += some
            if len(received) >= maximum:
                break
    finally:
        change_visibility(sqs, queue_url, [one["ReceiptHandle"] for one in received], seconds=0)
    found = sorted(map(_dead_letter, received), key=lambda one: one.sent_at)
    return found[:maximum], max(count, len(found))


def _received(sqs: "SQSClient", queue_url: str) -> "Iterator[list[MessageTypeDef]]":
    while True:
        reply = sqs.receive_message(
            QueueUrl=queue_url,
            MaxNumberOfMessages=MAXIMUM_ENTRIES,
            VisibilityTimeout=HELD_SECONDS,
            WaitTimeSeconds=1,  # a long poll queries all servers of SQS
            MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
            MessageAttributeNames=["Reason", *IDS],
        )
        if not reply.get("Messages"):
            return
        yield reply["Messages"]


def _dead_letter(message: "MessageTypeDef") -> DeadLetter:
    system = message["Attributes"]
    attributes = message.get("MessageAttributes", {})
    texts: Mapping[str, str] = {name: one.get("StringValue", "") for name, one in attributes.items()}
    return DeadLetter(
        message_id=next((texts[name] for name in IDS if texts.get(name)), message["MessageId"]),
        reason=texts.get("Reason") or NO_REASON,
        sent_at=datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
        receives=int(system["ApproximateReceiveCount"]) - 1,  # without the receive of this call
    )
