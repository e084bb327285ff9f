"""The mark of replayed messages: copies of kept messages that a session gets, and that are never returned."""

import hashlib
from dataclasses import replace
from datetime import datetime

from signalbox.messages import Attribute, Message
from signalbox.queues import QueueName

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
