"""The deliveries of forwarded messages, and the requests that return messages to their original queue."""

import hashlib
from collections.abc import Mapping

from signalbox.messages import Message, outgoing
from signalbox.queues import QueueName
from signalbox.sending import Delivery
from signalbox.splitting.model.claims import Decision, SessionId


def deliveries(
    message: Message, decision: Decision, *, deployed: QueueName, sessions: Mapping[SessionId, QueueName]
) -> tuple[Delivery, ...]:
    """Return the deliveries of a message: to its owner's queue, and a copy to each mirroring session's."""
    owner = deployed if decision.owner is None else sessions[decision.owner]
    copies = (Delivery(message, sessions[session], is_copy=True) for session in decision.copies)
    return (Delivery(message, owner), *copies)


def return_request(message: Message) -> dict[str, object]:
    """Return the SendMessage fields that return a message to its original queue.

    A FIFO queue deduplicates for five minutes, including deleted messages, so the message gets another de-duplication
    id, which is the same at each attempt to return it. A standard queue has delayed it already; a FIFO queue takes no
    delay of a message.
    """
    request = outgoing(message)
    if message.deduplication_id is None:
        request["DelaySeconds"] = 0
    else:
        text = f"returned:{message.deduplication_id}:{message.message_id}"
        request["MessageDeduplicationId"] = hashlib.sha256(text.encode()).hexdigest()
    return request
