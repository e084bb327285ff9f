"""Numbering the messages of a routing key on an ordered exchange: without a gap, and the same when one comes again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from signalbox.messages import MessageId
from signalbox.queues import QueueName

# A message comes again before any later one of its group, and no batch of a FIFO queue holds more than ten.
KEPT = 20
# Where other publishers' messages of the key may come between, that holds for each of them.
KEPT_OF_MANY = 100


@dataclass(frozen=True, slots=True)
class Head:
    """Where a key stands: its last number, the newest messages' numbers, and the last message of each detour.

    A detour is for a queue that did not take a message: while it is there, all that follows goes behind that message.
    """

    sequence: int = 0
    recent: Mapping[MessageId, int] = field(default_factory=dict)
    detours: Mapping[QueueName, int] = field(default_factory=dict)


def numbered(head: Head, messages: Iterable[MessageId], *, kept: int = KEPT) -> Head:
    """Return the head that has counted the messages, in their order; the same if it has counted all of them before."""
    sequence, recent = head.sequence, dict(head.recent)
    for message in messages:
        if message not in recent:
            sequence += 1
            recent[message] = sequence
    if sequence == head.sequence:
        return head
    newest = dict(sorted(recent.items(), key=lambda entry: entry[1])[-kept:])
    return replace(head, sequence=sequence, recent=newest)
