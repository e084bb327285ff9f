"""Dead letters of SQS queues, read without being taken out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from signalbox.aws.shared.messages import message_of
from signalbox.aws.shared.peek import peek
from signalbox.exchange.messages.end_events import NOT_DELETED
from signalbox.exchange.messages.replayed_messages import UNREADABLE, original_of_dead_letter
from signalbox.messages import moment
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType
    from mypy_boto3_sqs.type_defs import MessageTypeDef

VISIBLE: "QueueAttributeNameType" = "ApproximateNumberOfMessages"
IN_FLIGHT: "QueueAttributeNameType" = "ApproximateNumberOfMessagesNotVisible"
# SQS gives the dead letter an id of its own: these attributes have that by which `signalbox trace` knows the message.
IDS = ("message_id", "OriginalMessageId")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message of a dead-letter queue; `receives` counts those of its first queue, too, if SQS moved it."""

    message_id: str
    reason: str
    sent_at: datetime
    receives: int
    is_replayable: bool
    """Whether an exchange can accept the message."""


def dead_letters(
    sqs: "SQSClient", queue_url: str, *, exchange: ExchangeName | None, maximum: int
) -> tuple[Sequence[DeadLetter], int]:
    """Return up to `maximum` dead letters of a queue, the oldest first, and how many it has, also in flight.

    `exchange` is the exchange whose dead-letter queue it is.

    Of a FIFO queue, SQS returns at most ten messages of a group. Needs sqs:GetQueueAttributes, sqs:ReceiveMessage and
    sqs:ChangeMessageVisibility on the queue; raises the client's errors.
    """
    counted = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=[VISIBLE, IN_FLIGHT])["Attributes"]
    count = int(counted[VISIBLE]) + int(counted[IN_FLIGHT])
    if counted[VISIBLE] == "0":
        return (), count
    received = peek(sqs, queue_url, most=maximum)
    found = sorted((_dead_letter(one, exchange) for one in received), key=lambda one: one.sent_at)
    return found[:maximum], max(count, len(found))


def _dead_letter(message: "MessageTypeDef", exchange: ExchangeName | None) -> DeadLetter:
    system = message["Attributes"]
    attributes = message.get("MessageAttributes", {})
    texts: Mapping[str, str] = {name: one.get("StringValue", "") for name, one in attributes.items()}
    return DeadLetter(
        message_id=next((texts[name] for name in IDS if texts.get(name)), message["MessageId"]),
        reason=texts.get("Reason") or NOT_DELETED,
        sent_at=moment(system["SentTimestamp"]),
        receives=int(system["ApproximateReceiveCount"]) - 1,  # without the receive of this call
        is_replayable=_is_replayable(message, exchange),
    )


def _is_replayable(message: "MessageTypeDef", exchange: ExchangeName | None) -> bool:
    try:
        original_of_dead_letter(message_of(message), exchange=exchange)
    except UNREADABLE:
        return False
    return True
