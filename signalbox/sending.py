"""Sending many messages to many queues, ten a call."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from signalbox.messages import MAXIMUM_BYTES, Message, size_bytes
from signalbox.queues import QueueName

MAXIMUM_ENTRIES = 10  # SQS, SendMessageBatch


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message and one of the queues that it goes to; a copy is for a session that mirrors."""

    message: Message
    destination: QueueName
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Deliveries for one call to one queue."""

    destination: QueueName
    deliveries: tuple[Delivery, ...]


class QueueSender(Protocol):
    """Sends to queues, and buries what no queue takes."""

    def send(self, batch: Batch) -> Sequence[tuple[Delivery, str | None]]:
        """Make one call; return the deliveries that failed, with SQS's reason if it refused them for good.

        Raises `EffectFailed` when it is not known what SQS took.
        """
        ...

    def bury(self, message: Message, *, original: QueueName, reason: str) -> None:
        """Put a message into the dead-letter queue, with its reason and whence it came.

        Raises `EffectFailed`.
        """
        ...


def batches(chosen: Iterable[Delivery]) -> Iterator[Batch]:
    """Yield the calls that deliveries need, in order for each queue."""
    by_destination: dict[QueueName, list[Delivery]] = {}
    for delivery in chosen:
        by_destination.setdefault(delivery.destination, []).append(delivery)
    for destination, found in by_destination.items():
        for part in _parts(found):
            yield Batch(destination, part)


def _parts(found: Iterable[Delivery]) -> Iterator[tuple[Delivery, ...]]:
    part: list[Delivery] = []
    size = 0
    for delivery in found:
        bytes_more = size_bytes(delivery.message)
        if part and (len(part) == MAXIMUM_ENTRIES or size + bytes_more > MAXIMUM_BYTES):
            yield tuple(part)
            part, size = [], 0
        part.append(delivery)
        size += bytes_more
    yield tuple(part)
