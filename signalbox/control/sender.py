"""The sender of a command, as SQS proves it."""

from collections.abc import Mapping

from signalbox.errors import RejectedError

SENDER, MOVED_FROM = "SenderId", "DeadLetterQueueSourceArn"


class UnprovenSender(RejectedError):
    """Raised when a command may come from somebody else than the queue's owner: it is dead-lettered, not answered."""


def proven_sender(attributes: Mapping[str, str]) -> str:
    """Return the SenderId in the system attributes of a command, which was sent to the queue that delivered it.

    SQS asks nobody for permission when it moves the dead letters of another queue. Raises `UnprovenSender`.
    """
    source = attributes.get(MOVED_FROM)
    if source is not None:
        raise UnprovenSender(f"SQS moved the command here from {source}, so nobody was permitted to send it")
    sender = attributes.get(SENDER)
    if not sender:
        raise UnprovenSender("the command has no SenderId")
    return sender
