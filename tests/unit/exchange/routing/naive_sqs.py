"""A naive SQS: queues that refuse what SQS refuses and keep the rest."""

import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from signalbox.messages import MAXIMUM_BYTES, Message, size_bytes
from signalbox.queues import QueueName

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
VISIBILITY = 30


def refuse_what_sqs_refuses(message: Message) -> None:
    assert len(message.attributes) <= 10
    assert size_bytes(message) <= MAXIMUM_BYTES
    for name, one in message.attributes.items():
        assert re.fullmatch(r"(?!aws\.|amazon\.)[\w-]+(\.[\w-]+)*", name, re.ASCII | re.IGNORECASE), name
        assert len(name) <= 256
        assert (one.text is None) != (one.base64 is None)
        assert one.text is None or is_xml(one.text)
    assert is_xml(message.body)
    for text in (message.group_id, message.deduplication_id):
        assert text is None or re.fullmatch(r"[!-~]{1,128}", text)


def is_xml(text: str) -> bool:
    """The sentence of SQS's reference on SendMessage, MessageBody."""
    ranges = [(0x9, 0xA), (0xD, 0xD), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF)]
    return text != "" and all(any(low <= ord(c) <= high for low, high in ranges) for c in text)


def as_received(
    message: Message, *, message_id: str = "id-1", attempt: int = 1, sender: str = "AIDA", sent_at: datetime = START
) -> Message:
    """Return a message as SQS delivers it; fails if SQS would refuse it."""
    refuse_what_sqs_refuses(message)
    system = {"SentTimestamp": str(round(sent_at.timestamp() * 1000)), "SenderId": sender}
    document = {
        "MessageId": message_id,
        "Body": message.body,
        "Attributes": {**message.system_attributes, **system, "ApproximateReceiveCount": str(attempt)},
        "MessageAttributes": {name: one.value for name, one in message.attributes.items()},
    }
    return Message.parse(json.loads(json.dumps(document)))


@dataclass(eq=False)
class Entry:
    """A message in a queue."""

    message: Message
    receives: int = 0
    invisible_until: float = -1.0


@dataclass
class NaiveQueue:
    """An SQS queue. A FIFO queue drops duplicates for ever."""

    name: QueueName
    entries: list[Entry] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    count: int = 0

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(".fifo")

    def send(self, message: Message, *, sender: str = "AIDA", sent_at: datetime = START) -> None:
        if self.is_fifo:
            assert message.group_id is not None
            assert message.deduplication_id is not None
            if message.deduplication_id in self.seen:
                return
            self.seen.add(message.deduplication_id)
        else:
            assert message.deduplication_id is None, "a standard queue takes no de-duplication id"
        self.count += 1
        message_id = f"{self.name}-{self.count}"
        self.entries.append(Entry(as_received(message, message_id=message_id, sender=sender, sent_at=sent_at)))

    def receive(self, number: int, *, now: float) -> list[Entry]:
        locked = {one.message.group_id for one in self.entries if one.invisible_until > now} if self.is_fifo else set()
        free = [one for one in self.entries if one.invisible_until <= now and one.message.group_id not in locked]
        if not self.is_fifo:
            free = [one for one in self.entries if one.invisible_until <= now][::-1]
        for one in free[:number]:
            one.receives += 1
            one.invisible_until = now + VISIBILITY
            system = {**one.message.system_attributes, "ApproximateReceiveCount": str(one.receives)}
            one.message = replace(one.message, system_attributes=system)
        return free[:number]

    def delete(self, entry: Entry) -> None:
        self.entries.remove(entry)

    def messages(self) -> list[Message]:
        return [entry.message for entry in self.entries]
