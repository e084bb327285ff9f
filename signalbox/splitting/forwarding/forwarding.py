"""The SQS messages that forwarding and return send: where each one goes, and with which fields."""

import hashlib
from collections.abc import Mapping

from signalbox.messages import Message, outgoing
from signalbox.queues import QueueName
from signalbox.sending import Delivery
from signalbox.splitting.forwarding.matching import Decision, SessionId


def deliveries(
    message: Message, decision: Decision, *, deployed: QueueName, sessions: Mapping[SessionId, QueueName]
) -> tuple[Delivery, ...]:
    """Return where a message goes: to its owner's queue, and as a copy to each that mirrors it."""
    owner = deployed if decision.owner is None else sessions[decision.owner]
    copies = (Delivery(message, sessions[session], is_copy=True) for session in decision.copies)
    return (Delivery(message, owner), *copies)


def returned(message: Message) -> dict[str, object]:
    """Return what SendMessage is told when a message goes back into the original queue.

    A FIFO queue swallows what it has seen in the last five minutes, also when that was deleted since: the message
    needs another de-duplication id there, the same one each time that its return is tried.
    """
    told = outgoing(message)
    if message.deduplication_id is not None:
        text = f"returned:{message.deduplication_id}:{message.message_id}"
        told["MessageDeduplicationId"] = hashlib.sha256(text.encode()).hexdigest()
    return told
