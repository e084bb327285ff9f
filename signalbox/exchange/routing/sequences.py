"""Sequence numbers of the messages of a routing key: rising, and stable across redeliveries."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from signalbox.messages import MessageId
from signalbox.queues import QueueName

# A message is redelivered before any later one of its group, and a FIFO batch holds at most ten. One whose receipt was
# not deleted comes again with others behind it, so that the numbers of a batch's own messages are kept, too.
KEPT = 20
# Where messages of several publishers alternate within a key, that limit applies to each publisher.
KEPT_OF_MANY = 40
# The numbers of a key that has none yet begin with those of the day, since its earlier ones may have ended with their
# head. SQS passes 3,000 messages a second of a message group, a quarter of these.
DAY, NUMBERS_OF_A_DAY = timedelta(days=1), 10**9


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


def number_before(first_use: datetime, *, created_at: datetime) -> int:
    """Return the number before the first one of a key without a head: above those of any head that has ended.

    That is 0 on the first day of an exchange, when none has ended.
    """
    if first_use - created_at < DAY:
        return 0
    return (first_use - datetime.fromtimestamp(0, UTC)) // DAY * NUMBERS_OF_A_DAY


def head_end(last_use: datetime, *, retention: timedelta) -> datetime:
    """Return when a head ends that gets no number after its last use.

    A message may wait for its retention in the exchange, and then its copy in a retry queue. A day later, the numbers
    of a new head are above those of this one.
    """
    return last_use + 2 * retention + DAY
