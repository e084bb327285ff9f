"""Who is subscribed, as a router knows it: kept between batches, and asked for what has changed once a batch."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.matching import SubscriptionIndex
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

CACHED_PARTITIONS = 20_000  # by a router; most topics have a subscriber or two


@dataclass(frozen=True, slots=True)
class SubscriberPartition:
    """Subscribers that are read together: the exact ones of a topic, or with None all patterns of a realm."""

    realm: ExchangeName
    topic: RoutingKey | None


@dataclass(frozen=True, slots=True)
class SubscriberRow:
    """A subscriber, who may be forgotten after a moment."""

    subscriber: Subscriber
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SubscriberChange:
    """A subscriber who came, or with `row` None went."""

    connection: ConnectionId
    pattern: TopicPattern
    row: SubscriberRow | None


@dataclass(frozen=True, slots=True)
class PartitionVersion:
    """How often a bucket was changed, and the newest changes up to that number, the last one last."""

    number: int = 0
    changes: tuple[SubscriberChange, ...] = ()


class SubscriberTable(Protocol):
    """The subscribers as they are stored. Reads see every write that was answered."""

    def versions(self, buckets: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        """Return the versions of those of the buckets that were ever changed, in one read."""
        ...

    def changes(self, bucket: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        """Return earlier changes of a bucket by their numbers: all of these that are still kept, and perhaps others."""
        ...

    def rows(self, bucket: SubscriberPartition) -> Iterable[SubscriberRow]:
        """Return the subscribers of a bucket, none older than the last version that was read."""
        ...


SubscriberLookup = Callable[[RoutingKey], Sequence[Subscriber]]
_Key = tuple[ConnectionId, SubscriptionId]


@dataclass(slots=True)
class _CachedPartition:
    """A bucket as it was read last."""

    number: int
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
    """Finds subscribers. A look costs one read, and what has changed since the last.

    All patterns of a realm are read by its first look, and again when more has changed than there are of them, or the
    changes are kept no longer. Beside that, what does not match costs nothing. Use it from one thread only.
    """

    table: SubscriberTable
    now: Callable[[], datetime]
    maximum_partitions: int = CACHED_PARTITIONS
    _known: OrderedDict[SubscriberPartition, _CachedPartition] = field(default_factory=OrderedDict)

    def lookup(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        """Return who is subscribed to topics now: everybody whose being attached was answered before."""
        buckets = [SubscriberPartition(realm, None), *(SubscriberPartition(realm, topic) for topic in topics)]
        versions = self.table.versions(buckets)
        for bucket in buckets:
            self._bring_up_to_date(bucket, versions.get(bucket, PartitionVersion()))
        self._forget_oldest(at_least=len(buckets))
        now = self.now()

        def matching(topic: RoutingKey) -> list[Subscriber]:
            found = (
                self._known[bucket].index.matching(topic)
                for bucket in (SubscriberPartition(realm, None), SubscriberPartition(realm, topic))
            )
            return [row.subscriber for rows in found for row in rows if row.expires_at > now]

        return matching

    def _bring_up_to_date(self, bucket: SubscriberPartition, version: PartitionVersion) -> None:
        known = self._known.get(bucket)
        changes = None if known is None else self._missed(bucket, known, version)
        if known is None or changes is None:
            known = _CachedPartition(version.number)
            for row in self.table.rows(bucket) if version.number else ():
                known.put(row)
            self._known[bucket] = known  # not before all rows are there: reading may fail
        else:
            for change in changes:
                known.apply(change)
            known.number = version.number
        self._known.move_to_end(bucket)

    def _missed(
        self, bucket: SubscriberPartition, known: _CachedPartition, version: PartitionVersion
    ) -> Sequence[SubscriberChange] | None:
        """Return the changes since a bucket was read, or None if not all are kept, or its rows are fewer."""
        missing, listed = version.number - known.number, len(version.changes)
        if 0 <= missing <= listed:
            return version.changes[listed - missing :]
        if not 0 <= missing <= len(known.rows):
            return None
        earlier = range(known.number + 1, version.number - listed + 1)
        kept = self.table.changes(bucket, earlier)
        if any(number not in kept for number in earlier):
            return None
        return [*(kept[number] for number in earlier), *version.changes]

    def _forget_oldest(self, *, at_least: int) -> None:
        while len(self._known) > max(self.maximum_partitions, at_least):
            self._known.popitem(last=False)
