"""The delivery of a command by SQS: its proven sender."""

from collections.abc import Mapping

from signalbox.errors import RejectedError

SENDER, MOVED_FROM = "SenderId", "DeadLetterQueueSourceArn"


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
