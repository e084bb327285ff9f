"""A naive simulation of SQS queues with times in seconds.

FIFO queues lock a group while one of its messages is in flight, and deduplicate for ever (SQS: for five minutes),
including deleted messages.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from signalbox.messages import Message
from signalbox.splitting.model.observed_state import Sample

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
VISIBILITY = 30


@dataclass(eq=False)
class Entry:
    """A message in a queue."""

    key: int
    color: str
    group: str
    deduplication_id: str
    message_id: str
    first_received: float | None = None
    invisible_until: float = -1.0

    def message(self, *, is_fifo: bool) -> Message:
        received = START + timedelta(seconds=self.first_received or 0)
        system = {"ApproximateFirstReceiveTimestamp": str(int(received.timestamp() * 1000))}
        if is_fifo:
            system |= {"MessageGroupId": self.group, "MessageDeduplicationId": self.deduplication_id}
        return Message.parse(
            {
                "MessageId": self.message_id,
                "Body": str(self.key),
                "Attributes": system,
                "MessageAttributes": {"color": {"DataType": "String", "StringValue": self.color}},
            }
        )


@dataclass
class Queue:
    """A naive SQS queue."""

    is_fifo: bool
    created: float
    entries: list[Entry] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)
    counted: list[tuple[int, int]] = field(default_factory=list)
    """The newest numbers of waiting messages and of messages in flight, oldest first."""

    def send(self, entry: Entry) -> bool:
        if self.is_fifo and entry.deduplication_id in self.seen:
            return False
        self.seen.add(entry.deduplication_id)
        self.entries.append(entry)
        return True

    def receive(self, number: int, *, now: float) -> list[Entry]:
        locked = {one.group for one in self.entries if one.invisible_until > now} if self.is_fifo else set()
        free = [one for one in self.entries if one.invisible_until <= now and one.group not in locked]
        taken = (free if self.is_fifo else free[::-1])[:number]
        for one in taken:
            one.first_received = now if one.first_received is None else one.first_received
            one.invisible_until = now + VISIBILITY
        return taken

    def delete(self, entry: Entry) -> None:
        if entry in self.entries:
            self.entries.remove(entry)
