"""Batches of messages for queues: ten entries and 1 MiB a call."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from signalbox.messages import MAXIMUM_BYTES, Message, MessageId, size_bytes
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


@dataclass(frozen=True, slots=True)
class SentBatch:
    """The result of a call: the failed deliveries, and the new ids of the accepted messages.

    Each failure has SQS's reason if it is permanent, else None. `ids` are the messages' ids in the queue, by the ids of
    the messages that were sent: SQS gives each message a new one. `problem` says why the others failed for now,
    `is_queue_missing` whether SQS knows no such queue, and `is_denied` whether the queue's policy or key denies them.
    """

    failed: Sequence[tuple[Delivery, str | None]] = ()
    ids: Mapping[MessageId, MessageId] = field(default_factory=lambda: MappingProxyType({}))
    is_queue_missing: bool = False
    is_denied: bool = False
    problem: str | None = None


class QueueSender(Protocol):
    """Sends messages to queues in batches."""

    def send(self, batch: Batch) -> SentBatch:
        """Make one call. Raises `EffectFailed` when it is unknown which messages SQS accepted."""


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
