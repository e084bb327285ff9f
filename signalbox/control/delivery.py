"""The delivery of a command by SQS: its proven sender, when it was sent, and whether it comes again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from signalbox.errors import RejectedError

SENDER, MOVED_FROM = "SenderId", "DeadLetterQueueSourceArn"
SENT, RECEIVES = "SentTimestamp", "ApproximateReceiveCount"


class Overtaken(RejectedError):
    """Raised for a command that SQS delivers again after one that was sent later changed the same."""


@dataclass(frozen=True, slots=True)
class CommandDelivery:
    """When a command was sent, None for one that SQS does not deliver, and whether it was delivered before."""

    sent_at: datetime | None = None
    is_repeated: bool = False

    @classmethod
    def of(cls, attributes: Mapping[str, str]) -> "CommandDelivery":
        """Return the delivery with the system attributes of a command."""
        sent_at = datetime.fromtimestamp(int(attributes[SENT]) / 1000, UTC) if SENT in attributes else None
        return cls(sent_at, int(attributes.get(RECEIVES, "1")) > 1)

    def refuse_overtaken(self, changed_at: datetime | None, what: object) -> None:
        """Raise `Overtaken` if the command comes again, and `what` was made or changed by one that was sent later."""
        if self.is_repeated and self.sent_at and changed_at and self.sent_at < changed_at:
            raise Overtaken(
                f"a command that was sent after this one changed {what}: send yours again if it shall still be executed"
            )


ONCE = CommandDelivery()


class UnprovenSender(RejectedError):
    """Raised when another sender than the queue's owner may have sent a command: it is dead-lettered, not answered."""


def proven_sender(attributes: Mapping[str, str]) -> str:
    """Return the SenderId in the system attributes of a command, which was sent to the queue that delivered it.

    SQS needs no permission to move the dead letters of another queue here. Raises `UnprovenSender`.
    """
    source = attributes.get(MOVED_FROM)
    if source is not None:
        raise UnprovenSender(f"SQS moved the command here from {source}, without a permission to send it")
    sender = attributes.get(SENDER)
    if not sender:
        raise UnprovenSender("the command has no SenderId")
    return sender
