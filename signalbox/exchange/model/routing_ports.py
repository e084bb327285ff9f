"""What routing asks of the world, as Protocols named for their roles.

All of them let the world's errors through: a batch that ended with one comes again, and everything may happen twice.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import Binding, Exchange, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head
from signalbox.messages import MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sending import Batch, Delivery

Value = TypeVar("Value")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class RoutingSnapshot:
    """What one look at the table tells: those of the exchanges that are there, and whose SenderIds are known."""

    exchanges: Mapping[ExchangeName, Exchange]
    users: Mapping[str, UserName]


class RoutingTable(Protocol):
    """The declarations, as routing reads them."""

    def snapshot(self, exchanges: Iterable[ExchangeName], *, senders: Iterable[str]) -> RoutingSnapshot:
        """Return exchanges as they stand, and the users behind SenderIds, in one read however many there are."""
        ...

    def bindings(self, exchange: ExchangeName, *, first_word: str | None = None) -> Iterable[Binding]:
        """Return the bindings from an exchange, none older than the last look; read as far as they are asked for.

        With a first word, those whose patterns begin with it, and perhaps others.
        """
        ...

    def message_ttls(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, timedelta]:
        """Return how old messages become in those of the queues that say so; may be a moment old."""
        ...


class Heads(Protocol):
    """The heads of routing keys on ordered exchanges. Only one router at a time works on a key."""

    def read(self, exchange: ExchangeName, keys: Iterable[RoutingKey]) -> Mapping[RoutingKey, Head]:
        """Return the head of each key; that of a new key has counted nothing."""
        ...

    def save(self, exchange: ExchangeName, key: RoutingKey, head: Head, *, replacing: Head) -> bool:
        """Store what a head has counted; say whether it still stood as in `replacing`. Detours stay as they are."""
        ...

    def start_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """Note that messages of a key up to a sequence number reach a queue by way of the retry queue."""
        ...

    def extend_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> bool:
        """Note a later last message of a detour; say whether there still is one."""
        ...

    def end_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """End a detour, if this is its last message."""
        ...


class CopySender(Protocol):
    """Delivers to targets of one kind. Queues are the only kind so far."""

    def send(self, batch: Batch) -> Sequence[tuple[Delivery, str | None]]:
        """Make one call; return the deliveries that failed, with the reason if they were refused for good.

        Raises `EffectFailed` when it is not known what was taken.
        """
        ...


class DeclaredQueues(Protocol):
    """Knows which queues there are to be: SQS itself forgets and remembers them with some delay."""

    def is_declared(self, queue: DeclaredName) -> bool:
        """Say whether a queue is declared, and not about to be deleted."""
        ...


class CounterWriter(Protocol):
    """Counts what became of messages, minute by minute."""

    def add(self, counts: Mapping[ResourceRef, Mapping[str, int]], *, at: datetime) -> None:
        """Add to the counters of exchanges and queues. Never raises: counting must not stop a message."""
        ...


@dataclass(frozen=True, slots=True)
class NumberedPublication:
    """A publication to a live exchange, with its number among those of its routing key."""

    publication: Publication
    sequence: int


class LiveDelivery(Protocol):
    """Brings what is published to a live exchange to its connections."""

    def deliver(self, exchange: Exchange, published: Sequence[NumberedPublication]) -> Collection[MessageId]:
        """Bring publications, in their order, to whoever is subscribed; return the messages that must come again."""
        ...

    def acknowledge(self, publications: Sequence[Publication]) -> Collection[MessageId]:
        """Tell the publishers who wait for it that theirs are done; return the messages that must come again."""
        ...


class ParallelMap(Protocol):
    """Calls a function for each value and gives the answers in order, as `map`; perhaps with several at a time."""

    def __call__(self, function: Callable[[Value], Answer], values: Iterable[Value], /) -> Iterable[Answer]:
        """Return the answers. What one call raises is raised when its answer's turn comes."""
        ...


def serial_map(function: Callable[[Value], Answer], values: Iterable[Value], /) -> Iterable[Answer]:
    """Return the answers of calls that follow one another: `ParallelMap` where nothing is gained by haste."""
    return map(function, values)
