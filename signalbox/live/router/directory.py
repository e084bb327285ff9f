"""The router's cache of subscribers, which is updated once per batch by reading the changes."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.matching import SubscriptionIndex
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

CACHED_PARTITIONS = 20_000  # per router; most topics have one or two subscribers
KNOWN_FOR = timedelta(seconds=1)  # a subscriber that has gone since costs an item that is not posted


@dataclass(frozen=True, slots=True)
class SubscriberPartition:
    """A partition of the subscriber table: a topic's exact subscribers, or with None all pattern subscribers."""

    realm: ExchangeName
    topic: RoutingKey | None


def partitions_of(realm: ExchangeName, topics: Iterable[RoutingKey]) -> list[SubscriberPartition]:
    """Return the partitions of the subscribers of topics; the partition of all patterns is the first."""
    return [SubscriberPartition(realm, None), *(SubscriberPartition(realm, topic) for topic in topics)]


@dataclass(frozen=True, slots=True)
class SubscriberRow:
    """A subscriber with its expiry."""

    subscriber: Subscriber
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SubscriberChange:
    """An added subscriber, or with `row` None a removed one."""

    connection: ConnectionId
    pattern: TopicPattern
    row: SubscriberRow | None


@dataclass(frozen=True, slots=True)
class PartitionVersion:
    """The number of changes of a partition, and the newest of these changes, the last one last."""

    number: int = 0
    changes: tuple[SubscriberChange, ...] = ()


class SubscriberTable(Protocol):
    """The stored subscribers. Reads are strongly consistent."""

    def versions(self, partitions: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        """Return the versions of the partitions in one read; a partition that never changed has none."""

    def changes(self, partition: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        """Return earlier changes of a partition by number: those of `numbers` that are still stored, maybe others."""

    def rows(self, partition: SubscriberPartition) -> Iterable[SubscriberRow]:
        """Return the subscribers of a partition, at least as new as the last version that was read."""


SubscriberLookup = Callable[[RoutingKey], Sequence[Subscriber]]
_Key = tuple[ConnectionId, SubscriptionId]


@dataclass(slots=True)
class _CachedPartition:
    """A partition as of its last read."""

    number: int
    read_at: datetime
    rows: dict[_Key, SubscriberRow] = field(default_factory=dict)
    index: SubscriptionIndex[SubscriberRow] = field(default_factory=SubscriptionIndex)

    def put(self, row: SubscriberRow) -> None:
        key = row.subscriber.connection, row.subscriber.pattern.subscription_id
        self.remove(key)
        self.rows[key] = row
        self.index.add(row.subscriber.pattern, row)

    def remove(self, key: _Key) -> None:
        row = self.rows.pop(key, None)
        if row is not None:
            self.index.remove(row.subscriber.pattern, row)

    def apply(self, change: SubscriberChange) -> None:
        if change.row is None:
            self.remove((change.connection, change.pattern.subscription_id))
        else:
            self.put(change.row)


@dataclass(slots=True)
class CachedSubscriberDirectory:
    """Finds subscribers. A lookup reads the versions, and the changes since the previous lookup.

    The first lookup in a realm reads all its pattern subscribers. They are read again if more has changed than there
    are rows, or if the changes have expired. Apart from that, subscriptions that do not match cost nothing.
    Not thread-safe.
    """

    table: SubscriberTable
    now: Callable[[], datetime]
    maximum_partitions: int = CACHED_PARTITIONS
    _cache: OrderedDict[SubscriberPartition, _CachedPartition] = field(default_factory=OrderedDict)

    def lookup(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        """Return the lookup of subscribers by topic, including every subscriber whose `attach` has returned."""
        partitions, now = partitions_of(realm, topics), self.now()
        versions = self.table.versions(partitions)
        for partition in partitions:
            self._update(partition, versions.get(partition, PartitionVersion()), now)
        self._evict_oldest(at_least=len(partitions))
        return self._read_since(now, realm, topics)

    def known(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        """Return the lookup of the subscribers that were found within the last second, without a read."""
        return self._read_since(self.now() - KNOWN_FOR, realm, topics)

    def _read_since(self, since: datetime, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        now = self.now()

        def matching(topic: RoutingKey) -> list[Subscriber]:
            cached = (self._cache.get(partition) for partition in partitions_of(realm, [topic]))
            rows = (row for one in cached if one and one.read_at >= since for row in one.index.matching(topic))
            return [row.subscriber for row in rows if row.expires_at > now]

        return {topic: matching(topic) for topic in topics}.__getitem__

    def _update(self, partition: SubscriberPartition, version: PartitionVersion, now: datetime) -> None:
        cached = self._cache.get(partition)
        changes = None if cached is None else self._missed(partition, cached, version)
        if cached is None or changes is None:
            cached = _CachedPartition(version.number, now)
            for row in self.table.rows(partition) if version.number else ():
                cached.put(row)
            self._cache[partition] = cached  # only after all rows were read, which may fail
        else:
            for change in changes:
                cached.apply(change)
            cached.number, cached.read_at = version.number, now
        self._cache.move_to_end(partition)

    def _missed(
        self, partition: SubscriberPartition, cached: _CachedPartition, version: PartitionVersion
    ) -> Sequence[SubscriberChange] | None:
        """Return the changes since a partition was read; None if some have expired, or reading its rows is cheaper."""
        missing, listed = version.number - cached.number, len(version.changes)
        if 0 <= missing <= listed:
            return version.changes[listed - missing :]
        if not 0 <= missing <= len(cached.rows):
            return None
        earlier = range(cached.number + 1, version.number - listed + 1)
        stored = self.table.changes(partition, earlier)
        if any(number not in stored for number in earlier):
            return None
        return [*(stored[number] for number in earlier), *version.changes]

    def _evict_oldest(self, *, at_least: int) -> None:
        while len(self._cache) > max(self.maximum_partitions, at_least):
            self._cache.popitem(last=False)
