"""Batches of messages for queues: ten entries and 1 MiB a call."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from signalbox.messages import MAXIMUM_BYTES, Message, size_bytes
from signalbox.queues import QueueName

MAXIMUM_ENTRIES = 10  # SQS, SendMessageBatch


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message and one of its destination queues; `is_copy` marks the copy of a mirroring session."""

    message: Message
    destination: QueueName
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Deliveries for one call to one queue."""

    destination: QueueName
    deliveries: tuple[Delivery, ...]


class QueueSender(Protocol):
    """Sends messages to queues in batches."""

    def send(self, batch: Batch) -> Sequence[tuple[Delivery, str | None]]:
        """Make one call; return the failed deliveries, each with SQS's reason if the failure is permanent, else None.

        Raises `EffectFailed` when it is unknown which messages SQS accepted.
        """
        ...


def batches(chosen: Iterable[Delivery]) -> Iterator[Batch]:
    """Yield the batches that carry `chosen`, in order for each destination."""
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
