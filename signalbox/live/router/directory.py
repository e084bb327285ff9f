"""The router's cache of subscribers, which is updated once per batch by reading the changes."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.matching import SubscriptionIndex
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

CACHED_WEIGHT = 500_000  # of a function instance: 230 MB at most
PARTITION_WEIGHT = 10  # of a partition without subscribers
KNOWN_FOR = timedelta(seconds=1)  # a subscriber that has gone since costs an item that is not posted


@dataclass(frozen=True, slots=True)
class SubscriberPartition:
    """A partition of the subscriber table: a topic's exact subscribers, or with None all pattern subscribers."""

    realm: ExchangeName
    topic: RoutingKey | None


def partition_of(realm: ExchangeName, pattern: TopicPattern) -> SubscriberPartition:
    """Return the partition of the subscribers of a pattern."""
    return SubscriberPartition(realm, RoutingKey(pattern.uri) if pattern.match is MatchPolicy.EXACT else None)


def partitions_of(realm: ExchangeName, topics: Iterable[RoutingKey]) -> list[SubscriberPartition]:
    """Return the partitions of the subscribers of topics; the partition of all patterns is the first."""
    return [SubscriberPartition(realm, None), *(SubscriberPartition(realm, topic) for topic in topics)]


@dataclass(frozen=True, slots=True)
class SubscriberRow:
    """A subscriber with the time when it subscribed, and its expiry."""

    subscriber: Subscriber
    created_at: datetime
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


@dataclass(slots=True)
class _CachedPartition:
    """A partition as of its last read."""

    number: int
    read_at: datetime
    rows: dict[SubscriptionId, dict[ConnectionId, SubscriberRow]] = field(default_factory=dict)
    index: SubscriptionIndex[SubscriberRow] = field(default_factory=SubscriptionIndex)
    count: int = 0
    weight: int = PARTITION_WEIGHT

    def put(self, row: SubscriberRow) -> None:
        connection, pattern = row.subscriber.connection, row.subscriber.pattern
        self.remove(connection, pattern.subscription_id)
        self.rows.setdefault(pattern.subscription_id, {})[connection] = row
        self.index.add(pattern, row)
        self.count += 1
        self.weight += pattern.weight

    def remove(self, connection: ConnectionId, subscription: SubscriptionId) -> None:
        of_pattern = self.rows.get(subscription, {})
        row = of_pattern.pop(connection, None)
        if row is None:
            return
        if not of_pattern:
            del self.rows[subscription]
        self.index.remove(row.subscriber.pattern, row)
        self.count -= 1
        self.weight -= row.subscriber.pattern.weight

    def apply(self, change: SubscriberChange) -> None:
        if change.row is None:
            self.remove(change.connection, change.pattern.subscription_id)
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
    maximum_weight: int = CACHED_WEIGHT
    _cache: OrderedDict[SubscriberPartition, _CachedPartition] = field(default_factory=OrderedDict)
    _weight: int = 0

    def lookup(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        """Return the lookup of subscribers by topic, including every subscriber whose `attach` has returned."""
        now = self.now()
        self._read(partitions_of(realm, topics), now)
        return self._read_since(now, realm, topics)

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Iterator[SubscriberRow]:
        """Yield the subscribers of a pattern as of the last read of its partition."""
        cached = self._cache.get(partition_of(realm, pattern))
        rows = cached.rows.get(pattern.subscription_id, {}).values() if cached else ()
        now = self.now()
        return (row for row in rows if row.subscriber.pattern == pattern and row.expires_at > now)

    def has(self, realm: ExchangeName, subscriber: Subscriber) -> bool:
        """Return whether a subscriber was attached at the last read of its partition."""
        cached, pattern = self._cache.get(partition_of(realm, subscriber.pattern)), subscriber.pattern
        return cached is not None and subscriber.connection in cached.rows.get(pattern.subscription_id, {})

    def with_patterns(self, realm: ExchangeName) -> Iterator[SubscriberRow]:
        """Yield the subscribers of a realm's prefixes and wildcards as of their last read."""
        cached, now = self._cache.get(SubscriberPartition(realm, None)), self.now()
        found = cached.rows.values() if cached else ()
        return (row for rows in found for row in rows.values() if row.expires_at > now)

    def read_at(self, realm: ExchangeName) -> datetime | None:
        """Return when the prefixes and wildcards of a realm were last read, if they are cached."""
        cached = self._cache.get(SubscriberPartition(realm, None))
        return cached.read_at if cached else None

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

    def _read(self, partitions: Collection[SubscriberPartition], now: datetime) -> None:
        versions = self.table.versions(partitions)
        for partition in partitions:
            before = self._weight_of(partition)
            self._update(partition, versions.get(partition, PartitionVersion()), now)
            self._weight += self._weight_of(partition) - before
        while self._weight > self.maximum_weight and len(self._cache) > len(partitions):
            self._weight -= self._cache.popitem(last=False)[1].weight

    def _weight_of(self, partition: SubscriberPartition) -> int:
        cached = self._cache.get(partition)
        return cached.weight if cached else 0

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
        if not 0 <= missing <= cached.count:
            return None
        earlier = range(cached.number + 1, version.number - listed + 1)
        stored = self.table.changes(partition, earlier)
        if any(number not in stored for number in earlier):
            return None
        return [*(stored[number] for number in earlier), *version.changes]
