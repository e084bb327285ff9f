"""The delivery of a command by SQS: its proven sender, and the number of its receives."""

from collections.abc import Mapping

from signalbox.errors import RejectedError

SENDER, MOVED_FROM, RECEIVED = "SenderId", "DeadLetterQueueSourceArn", "ApproximateReceiveCount"
# A command without a result after these receives is dead-lettered; SQS does so for the queues of the stack.
MAXIMUM_RECEIVES = 5


class UnprovenSender(RejectedError):
    """Raised when another sender than the queue's owner may have sent a command: it is dead-lettered, not answered."""


class WornOut(RejectedError):
    """Raised when a command was received so often that it seems to stop the function; it is dead-lettered."""


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


def refuse_worn_out(attributes: Mapping[str, str]) -> None:
    """Raise `WornOut` for the system attributes of a command that was received too often."""
    received = int(attributes.get(RECEIVED, 1))
    if received > MAXIMUM_RECEIVES:
        raise WornOut(f"the command was received {received} times without a result")
