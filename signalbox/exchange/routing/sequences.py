"""Sequence numbers of the messages of a routing key: without gaps, and stable across redeliveries."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from signalbox.messages import MessageId
from signalbox.queues import QueueName

# A message is redelivered before any later one of its group, and a FIFO batch holds at most ten. One whose receipt was
# not deleted comes again with others behind it, so that the numbers of a batch's own messages are kept, too.
KEPT = 20
# Where messages of several publishers alternate within a key, that limit applies to each publisher.
KEPT_OF_MANY = 40


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a key: its last number, the newest messages' numbers, and the last message of each detour.

    A detour exists for a queue that did not accept a message: until it ends, all later messages follow that one through
    the retry queue.
    """

    sequence: int = 0
    recent: Mapping[MessageId, int] = field(default_factory=dict)
    detours: Mapping[QueueName, int] = field(default_factory=dict)


def numbered(head: Head, messages: Collection[MessageId], *, kept: int = KEPT) -> Head:
    """Return the head after numbering the messages, in order; the same head if all were numbered before."""
    sequence, recent = head.sequence, dict(head.recent)
    for message in messages:
        if message not in recent:
            sequence += 1
            recent[message] = sequence
    if sequence == head.sequence:
        return head
    first = min(sequence - kept + 1, *(recent[message] for message in messages))
    newest = {message: number for message, number in recent.items() if number >= first}
    return replace(head, sequence=sequence, recent=newest)
