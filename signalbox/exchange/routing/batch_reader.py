"""The reader of batches: decides which messages are publications, and to which queues each of them goes."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from signalbox.errors import UnavailableError
from signalbox.exchange.matching.graph import RoutingGraph
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import (
    Publication,
    Rejection,
    TrustedSenders,
    attempt,
    checked_group,
    principal_id,
    publication,
    publisher_of,
    read_publication,
)
from signalbox.exchange.model.denies import Denies, DenyReader
from signalbox.exchange.model.records import ExchangeRecord, OrderBy, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.copy_settings import CopySettingsCache
from signalbox.exchange.routing.denied_routes import RouteDenies
from signalbox.exchange.routing.ports import RoutingTable
from signalbox.exchange.routing.sequences import Head
from signalbox.fifo import FifoBatch
from signalbox.messages import Message, MessageId, size_bytes
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

Entry = Publication | Rejection
NO_POISON: Mapping[MessageId, str] = {}


class ExchangeUnknown(UnavailableError):
    """Raised when a queue's exchange is not declared; its messages stay in the queue."""


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """The messages of an exchange's queue as publications and rejections, in order, and the heads of their keys."""

    exchange: ExchangeRecord
    entries: Sequence[Entry]
    heads: Mapping[RoutingKey, Head]
    read_at: datetime

    @property
    def new(self) -> Sequence[Publication]:
        """Return the publications that have no number yet."""
        found = (entry for entry in self.entries if isinstance(entry, Publication))
        return [one for one in found if _place(one, self.heads)[1] == math.inf]

    def rejecting(self, reasons: Mapping[MessageId, str]) -> "ReadBatch":
        """Return the batch with rejections of the messages that have a reason."""
        entries = [
            Rejection(one.message, reasons[one.message.message_id]) if one.message.message_id in reasons else one
            for one in self.entries
        ]
        return replace(self, entries=entries)

    @property
    def idle_keys(self) -> AbstractSet[RoutingKey]:
        """Return the keys that need no number: they have none yet, no message goes to a queue, and none is logged."""
        found = [entry for entry in self.entries if isinstance(entry, Publication)]
        if self.exchange.live is not None:
            return set()
        used = {one.properties.key for one in found if one.routes.queues}
        return {one.properties.key for one in found} - used - self.heads.keys()

    def without(self, refused: Collection[MessageId]) -> "tuple[ReadBatch, tuple[MessageId, ...]]":
        """Return the batch without `refused` messages and those behind them in their groups, and the ids of these."""
        if not refused:
            return self, ()
        work = FifoBatch([(entry.message, entry) for entry in self.entries], is_fifo=True)
        for message_id in refused:
            work.fail(message_id)
        entries = work.unblocked()
        left = (entry.message.message_id for entry in self.entries if entry not in entries)
        return replace(self, entries=entries), tuple(left)

    @property
    def received(self) -> Mapping[ResourceRef, Mapping[str, int]]:
        """Return the counters of the received messages."""
        messages = [entry.message for entry in self.entries]
        redelivered = sum(1 for message in messages if attempt(message) > 1)
        counted = {"received": len(messages), "redelivered": redelivered, "bytes": sum(map(size_bytes, messages))}
        return {self.exchange.resource: {name: number for name, number in counted.items() if number}}


@dataclass(slots=True)
class BatchReader:
    """Reads batches, and caches compiled exchanges and the users of SenderIds between calls. Not thread-safe.

    `metadata_problem` returns why a live exchange cannot read the metadata of a publication, or None.
    """

    table: RoutingTable
    copy_settings: CopySettingsCache
    denies: DenyReader
    senders: TrustedSenders
    metadata_problem: Callable[[Publication], str | None]
    now: Callable[[], datetime]
    graph: RoutingGraph = field(default_factory=RoutingGraph)
    _users: dict[str, UserName] = field(default_factory=dict)

    def read(self, messages: Sequence[Message], exchange: ExchangeName, poison: Mapping[MessageId, str]) -> ReadBatch:
        """Read messages of an exchange's queue. Those in `poison` are rejected unread, each with its reason.

        Raises `ExchangeUnknown`.
        """
        contents = [(message, self._content(message, poison)) for message in messages]
        keys = {content.key for _, content in contents if isinstance(content, MessageProperties)}
        unknown = {principal_id(one) for one in messages if not self.senders.trust(one)} - {"", *self._users}
        heads = self._refresh(exchange, keys, senders=unknown)
        publishers = [publisher_of(message, self._users, self.senders) for message in messages]
        by_key: dict[RoutingKey, set[str]] = {key: set() for key in keys}
        for (_, content), publisher in zip(contents, publishers, strict=True):
            if isinstance(content, MessageProperties):
                by_key[content.key].add(publisher)
        denied = self._denied(exchange, by_key)
        entries = [
            self._entry(message, content, publisher, denied, heads)
            for (message, content), publisher in zip(contents, publishers, strict=True)
        ]
        record = self.graph.exchange(exchange)
        if record.order_by is OrderBy.PUBLISHER:
            entries = _ordered(entries, heads)
        return ReadBatch(record, entries, heads, self.now())

    def _content(self, message: Message, poison: Mapping[MessageId, str]) -> MessageProperties | Rejection:
        if message.message_id in poison:
            return Rejection(message, poison[message.message_id])
        return read_publication(message, self.senders)

    def _denied(self, exchange: ExchangeName, publishers: Mapping[RoutingKey, Collection[str]]) -> RouteDenies:
        """Read the denies that may take a way of a message: of its publishers, and of the users of its queues."""
        ways = {key: self.graph.ways(exchange, key) for key in publishers}
        realms = self.graph.realms(exchange)
        if not realms:
            return RouteDenies(exchange, ways, {}, {})
        readers = {key: found.readers(realms) for key, found in ways.items()}
        queues = {queue for by_realm in readers.values() for reached in by_realm.values() for queue in reached}
        owners = self.copy_settings.owners(queues, now=self.now())
        asked = {
            (realm, UserName(user))
            for key, by_realm in readers.items()
            for realm, reached in by_realm.items()
            for users in (publishers[key], *(owners.get(queue, ()) for queue in reached))
            for user in users
        }
        denies: dict[UserName, dict[ExchangeName, Denies]] = {}
        for (realm, user), found in self.denies.of(sorted(asked)).items():
            denies.setdefault(user, {})[realm] = found
        return RouteDenies(exchange, ways, denies, owners)

    def _entry(
        self,
        message: Message,
        content: MessageProperties | Rejection,
        publisher: str,
        denied: RouteDenies,
        heads: Mapping[RoutingKey, Head],
    ) -> Entry:
        if isinstance(content, Rejection):
            return content
        exchange, key = denied.root, content.key
        # The control plane and sessions have checked the rights of the users that they name; and a message with a
        # number is in the log already, and others may have received it.
        is_checked = self.senders.trust(message) or message.message_id in heads.get(key, Head()).recent
        if not is_checked and exchange in denied.closed(Right.WRITE, key, publisher):
            return Rejection(message, f"user {publisher!r} is denied to publish to this topic of {str(exchange)!r}")
        routes = denied.routes(key, publisher)
        published = publication(message, content, routes, publisher, self.senders)
        record = self.graph.exchange(exchange)
        reason = self.metadata_problem(published) if record.live else None
        return checked_group(published, record.order_by) if reason is None else Rejection(message, reason)

    def _refresh(
        self, root: ExchangeName, keys: Collection[RoutingKey], *, senders: Collection[str]
    ) -> Mapping[RoutingKey, Head]:
        """Compile the changed exchanges among those that `root` leads to; usually one read finds no change.

        The same read returns the heads of an ordered exchange.
        """
        snapshot = self.table.snapshot(
            unseen := self.graph.reachable(root), senders=senders, heads=(root, keys) if is_fifo(root) else None
        )
        self._users.update(snapshot.users)
        heads, seen = snapshot.heads or {}, unseen
        self._compile(unseen, snapshot.exchanges, keys)
        if root not in snapshot.exchanges:
            raise ExchangeUnknown(f"exchange {root!r} is not declared")
        while unseen := self.graph.reachable(root) - seen:
            self._compile(unseen, self.table.snapshot(unseen, senders=()).exchanges, keys)
            seen |= unseen
        self.graph.use(seen)
        return heads

    def _compile(
        self,
        names: Collection[ExchangeName],
        stored: Mapping[ExchangeName, ExchangeRecord],
        keys: Collection[RoutingKey],
    ) -> None:
        for name in names:
            exchange = stored.get(name)
            if exchange is None:
                self.graph.forget(name)
            elif not self.graph.knows(exchange):
                self.graph.put(exchange, self.table.bindings(name))
            self._complete(name, keys)

    def _complete(self, name: ExchangeName, keys: Collection[RoutingKey]) -> None:
        """Compile the bindings of a large exchange that may match keys."""
        if self.graph.missing(name, keys) and self.graph.is_full(name):
            self.graph.empty(name)
        while place := self.graph.unknown(name, keys):
            self.graph.add_first_words(name, self.table.first_words(name, around=place))
        for word in self.graph.missing(name, keys):
            self.graph.add(name, word, self.table.bindings(name, first_word=word))


def _ordered(entries: Sequence[Entry], heads: Mapping[RoutingKey, Head]) -> list[Entry]:
    """Return a batch in the order of its groups and of the numbers that its messages have: SQS orders only groups."""
    ordered: list[Entry] = []
    left = list(entries)
    while left:
        first = next((one for place, one in enumerate(left) if _is_first(one, left, place, heads)), left[0])
        left.remove(first)
        ordered.append(first)
    return ordered


def _is_first(entry: Entry, left: Sequence[Entry], place: int, heads: Mapping[RoutingKey, Head]) -> bool:
    """Return whether an entry is the first one of its group, and no other one of its key has a lower number."""
    if entry.message.group_id in {one.message.group_id for one in left[:place]}:
        return False
    key, number = _place(entry, heads)
    places = [_place(one, heads) for one in left]
    return key is None or number <= min(other for its_key, other in places if its_key == key)


def _place(entry: Entry, heads: Mapping[RoutingKey, Head]) -> tuple[RoutingKey | None, float]:
    """Return an entry's key and its number, which for a new message is above all others."""
    if isinstance(entry, Rejection):
        return None, math.inf
    key = entry.properties.key
    return key, heads.get(key, Head()).recent.get(entry.message.message_id, math.inf)
