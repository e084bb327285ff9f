"""The deliveries of forwarded messages, and the requests that return messages to their original queue."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from signalbox.messages import Attribute, Message, outgoing
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


MARK = "signalbox-replayed"
MAXIMUM_ATTRIBUTES = 10  # SQS
DEDUPLICATION_ID = "MessageDeduplicationId"


def marked(message: Message, queue: QueueName, *, at: datetime) -> Message | None:
    """Return the copy of a kept message for a session's queue, or None if it has no room for the mark.

    A copy is sent with the same deduplication id at each attempt. It is not the message's own, by which the queue would
    drop the second of two messages that were sent with one id more than five minutes apart.
    """
    attributes = {**message.attributes, MARK: Attribute("String", f"{at.isoformat(timespec='milliseconds')} {queue}")}
    if len(attributes) > MAXIMUM_ATTRIBUTES:
        return None
    system = dict(message.system_attributes)
    if message.deduplication_id is not None:
        text = f"replayed:{message.deduplication_id}:{message.message_id}"
        system[DEDUPLICATION_ID] = hashlib.sha256(text.encode()).hexdigest()
    return replace(message, attributes=attributes, system_attributes=system)


def is_replayed(message: Message, queue: QueueName) -> bool:
    """Return whether a message was replayed into this queue, and not only has the mark of another one."""
    mark = message.attributes.get(MARK)
    return mark is not None and mark.text is not None and mark.text.endswith(f" {queue}")
