"""The ports of routing.

They let AWS errors propagate: a batch that ends with an error is redelivered, so that every call may happen twice.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol, TypeVar

from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import Binding, ExchangeRecord, GroupBy, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head
from signalbox.messages import MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sending import Batch, SentBatch

KeysOfExchange = tuple[ExchangeName, Collection[RoutingKey]]


@dataclass(frozen=True, slots=True)
class RoutingSnapshot:
    """The result of one read: the existing exchanges, the users of known SenderIds, and heads of routing keys.

    `heads` is None if none were read.
    """

    exchanges: Mapping[ExchangeName, ExchangeRecord]
    users: Mapping[str, UserName]
    heads: Mapping[RoutingKey, Head] | None = None


@dataclass(frozen=True, slots=True)
class CopySettings:
    """The settings of a queue that concern copies: TTL, groups, whether they are kept, and who declared the queue."""

    message_ttl: timedelta | None = None
    is_kept: bool = False
    owner: UserName | None = None
    group_by: GroupBy = GroupBy.PUBLISHER


class RoutingTable(Protocol):
    """The stored declarations that routing reads."""

    def snapshot(
        self, exchanges: Iterable[ExchangeName], *, senders: Iterable[str], heads: KeysOfExchange | None = None
    ) -> RoutingSnapshot:
        """Return the records of exchanges, the users of SenderIds and heads, in one read for any number of them."""

    def bindings(self, exchange: ExchangeName, *, first_word: str | None = None) -> Iterable[Binding]:
        """Return the bindings from an exchange, at least as new as the last snapshot, read page by page.

        With a first word, return the bindings whose patterns begin with it, and possibly others.
        """

    def first_words(self, exchange: ExchangeName, *, around: str) -> Sequence[str]:
        """Return places of first words of bindings, sorted: the last before the place `around`, and from `around` on.

        `FIRST_PLACE` is before, and `LAST_PLACE` behind all. The result is at least as new as the last snapshot.
        """

    def copy_settings(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, CopySettings]:
        """Return the settings of existing queues; the values may be slightly stale."""


class Heads(Protocol):
    """The heads of routing keys on ordered exchanges. Only one router at a time works on a key."""

    def read(self, exchange: ExchangeName, keys: Iterable[RoutingKey]) -> Mapping[RoutingKey, Head]:
        """Return the stored heads of keys; a new key has none."""

    def save(self, exchange: ExchangeName, change: "HeadChange") -> bool:
        """Store a head's numbers, not its detours, and a hold of its key; return whether the change applied.

        The write has one attempt, and may have applied if it fails without an answer.
        """

    def start_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """Record that the messages of a key up to the number `last` reach a queue by the retry queue."""

    def extend_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> bool:
        """Set the last message of an existing detour; return False if it has ended."""

    def end_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """End a detour if `last` is its last message."""


class CopySender(Protocol):
    """Sends copies to targets of one kind. SQS queues are the only kind."""

    def send(self, batch: Batch) -> SentBatch:
        """Make one call. Raises `EffectFailed` when it is not known which messages were accepted."""


class SentCopy(Protocol):
    """A copy of a publication for a queue or a connection, the publication's `attempt`."""

    @property
    def message_id(self) -> MessageId:
        """Return the id of the publication."""

    @property
    def destination(self) -> str:
        """Return the name of the queue, or the connection."""

    @property
    def attempt(self) -> int:
        """Return how often the publication was received, including this time."""


AnyCopy = TypeVar("AnyCopy", bound=SentCopy)


class SentCopies(Protocol):
    """The copies of unfinished publications that are accounted for."""

    def add(self, copies: Iterable[SentCopy], *, now: datetime) -> None:
        """Record copies for as long as their publications may be received again."""

    def left(self, copies: Sequence[AnyCopy]) -> Sequence[AnyCopy]:
        """Return the copies that are not recorded; only those of publications received before are looked up."""


class DeclaredQueues(Protocol):
    """The declared queues on record: SQS itself reports new and deleted queues with a delay."""

    def created_at(self, queue: DeclaredName) -> datetime | None:
        """Return the time of a queue's first declaration, or None if it is not declared or being deleted."""


WaitingChanges = Counter[tuple[date, int]]
"""Increments of the numbers of waiting copies, by the day of publication and the share of the exchange."""


class WaitingCopies(Protocol):
    """The numbers of copies of the owners of queues that wait in the retry queues."""

    def add_waiting(self, owner: DeclaredName, changes: WaitingChanges, *, now: datetime) -> Mapping[int, int] | None:
        """Add to an owner's numbers of waiting copies; return the sum of each share, or None if that failed.

        Days before the first one that was changed lately, even by 0, do not count: no copy of theirs waits any more.
        """


Counts = Mapping[ResourceRef, Mapping[str, int]]
"""Increments of the counters of exchanges and queues."""


class CounterWriter(Protocol):
    """Adds to the counters of messages, minute by minute."""

    def add(self, counts: Counts, *, at: datetime) -> None:
        """Add to the counters of exchanges and queues. Never raises: counting must not stop a message."""


@dataclass(frozen=True, slots=True)
class NumberedPublication:
    """A publication to a live exchange, with its number among those of its routing key."""

    publication: Publication
    sequence: int


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold of a routing key for messages with numbers until a time.

    At `now`, the messages `replacing` hold the key, or nothing does if there are none.
    """

    messages: Sequence[MessageId]
    replacing: Sequence[MessageId]
    now: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class HeadChange:
    """A head to store, with a hold of its key.

    It applies if the stored head still equals `replacing`, and the stored hold of its key is the one that `hold`
    replaces. At `expires_at` the head ends, unless it is stored again.
    """

    key: RoutingKey
    head: Head
    replacing: Head
    hold: NewHold | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """The outcome of a delivery to connections: the messages to redeliver, and the copies that were sent."""

    failed: Collection[MessageId] = ()
    sent: Sequence[SentCopy] = ()


Delivery = Callable[[], Distribution]
"""Sends stored publications to connections, once."""


class LiveDelivery(Protocol):
    """Delivers publications of a live exchange to its connections."""

    def refused(self, exchange: ExchangeRecord, publications: Sequence[Publication]) -> Mapping[MessageId, str]:
        """Return those of new publications that are above a limit of their publishers, each with the reason."""

    def store(self, exchange: ExchangeRecord, published: Sequence[NumberedPublication]) -> Delivery:
        """Store publications, in order, in the log; return their delivery to subscribed connections."""

    def store_with(
        self, exchange: ExchangeRecord, published: Sequence[NumberedPublication], heads: Sequence[HeadChange]
    ) -> Delivery | None:
        """Store `heads`, and publications as `store` does; return None if no publication was stored."""

    def publication_id(self, publication: Publication) -> int:
        """Return the id by which connections and logs know a publication."""

    def acknowledge(self, publications: Sequence[Publication]) -> Collection[MessageId]:
        """Acknowledge publications to publishers that wait for it; return the messages to redeliver."""
