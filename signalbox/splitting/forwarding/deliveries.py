"""The deliveries of forwarded messages, and the requests that return messages to their original queue."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from signalbox.messages import Attribute, Message, outgoing
from signalbox.queues import QueueName
from signalbox.sending import Delivery
from signalbox.splitting.model.claims import Decision, SessionId

MARK = "signalbox-replayed"
MAXIMUM_ATTRIBUTES = 10  # SQS
DEDUPLICATION_ID = "MessageDeduplicationId"


def deliveries(
    message: Message, decision: Decision, *, deployed: QueueName, sessions: Mapping[SessionId, QueueName]
) -> tuple[Delivery, ...]:
    """Return the deliveries of a message: to its owner's queue, and a copy to each mirroring session's."""
    owner = deployed if decision.owner is None else sessions[decision.owner]
    sent = _identified(message, "forwarded")
    return (Delivery(sent, owner), *(Delivery(sent, sessions[session], is_copy=True) for session in decision.copies))


def _identified(message: Message, purpose: str) -> Message:
    """Return a message of a FIFO queue with a deduplication id for this purpose, the same at each attempt.

    With its own id, SQS would drop it if its destination has received, within five minutes, a message that was sent
    with the same id more than five minutes earlier, or the message itself.
    """
    if message.deduplication_id is None:
        return message
    text = f"{purpose}:{message.deduplication_id}:{message.message_id}"
    own = {DEDUPLICATION_ID: hashlib.sha256(text.encode()).hexdigest()}
    return replace(message, system_attributes={**message.system_attributes, **own})


def return_request(message: Message) -> dict[str, object]:
    """Return the SendMessage fields that return a message to its original queue.

    A standard queue has delayed it already; a FIFO queue takes no delay of a message.
    """
    request = outgoing(_identified(message, "returned"))
    return request if message.deduplication_id is not None else {**request, "DelaySeconds": 0}


def marked(message: Message, queue: QueueName, *, at: datetime) -> Message | None:
    """Return the copy of a kept message for a session's queue, or None if it has no room for the mark."""
    attributes = {**message.attributes, MARK: Attribute("String", f"{at.isoformat(timespec='milliseconds')} {queue}")}
    if len(attributes) > MAXIMUM_ATTRIBUTES:
        return None
    return _identified(replace(message, attributes=attributes), "replayed")


def is_replayed(message: Message, queue: QueueName) -> bool:
    """Return whether a message has the mark of a replay into this queue, not one of a replay into another queue."""
    mark = message.attributes.get(MARK)
    return mark is not None and mark.text is not None and mark.text.endswith(f" {queue}")
