"""Subscribers in the table `Live`: one row per subscriber, and one version item per partition.

The version item has the newest changes, so an up-to-date router reads nothing else; earlier changes are kept for a
while (`changes.py`). The row is written before the version is raised. A router that reads the new version therefore
finds the row, and one that reads the old version has already appended its events to the log.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from signalbox.aws.live.changes import DynamoSubscriberChanges
from signalbox.aws.live.items import (
    SUBSCRIBER,
    pattern_subscribers_partition,
    subscriber_key,
    subscriber_partition,
    subscriber_version_key,
    topic_subscribers_partition,
)
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment, ttl
from signalbox.aws.shared.expressions import Delete, Item, Put, attr
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.ports import Attached
from signalbox.live.router.directory import (
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
    partitions_of,
)
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class DynamoSubscribers:
    """Implementation of `Subscribers`, `SubscriberTable` and `SubscriptionLookup`."""

    table: DynamoTable
    parallel_map: ParallelMap = serial_map

    def attach(self, realm: ExchangeName, subscriber: Subscriber, *, at: datetime, expires_at: datetime) -> None:
        """Add a subscriber until `expires_at`. Idempotent.

        When this returns, the subscriber is in the result of every later lookup of every router.
        """
        row = _row_item(subscriber, at=at, expires_at=expires_at)
        self.table.write(Put(subscriber_key(realm, subscriber.pattern, subscriber.connection) | row))
        self._changes.add(subscriber_partition(realm, subscriber.pattern), [row], at=at)

    def detach(self, realm: ExchangeName, patterns: Collection[TopicPattern], connection: ConnectionId) -> None:
        """Remove the subscribers of one connection. Idempotent.

        Rows are deleted in batches of 25. The version of each topic, of which a session may have a thousand, is raised
        by parallel writes.
        """
        removed: dict[str, list[Item]] = {}
        self.table.write_all(Delete(subscriber_key(realm, pattern, connection)) for pattern in patterns)
        for pattern in patterns:
            change = {"connection": connection, "match": pattern.match.value, "uri": pattern.uri}
            removed.setdefault(subscriber_partition(realm, pattern), []).append(change)
        now = datetime.now(UTC)
        for _ in self.parallel_map(lambda partition: self._changes.add(partition, removed[partition], at=now), removed):
            pass

    def versions(self, partitions: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        """Return the versions of the partitions in one read; a partition that never changed has none."""
        by_partition = {_partition_key(one): one for one in partitions}
        keys = [subscriber_version_key(partition) for partition in by_partition]
        items = self.table.get_all(keys)
        return {by_partition[item["pk"]]: _version(item) for item in items}

    def changes(self, partition: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        """Return earlier changes of a partition by number: those of `numbers` that are still stored, maybe others."""
        found = self._changes.earlier_changes(_partition_key(partition), numbers)
        return {number: _change(item) for number, item in found.items()}

    def rows(self, partition: SubscriberPartition) -> Iterable[SubscriberRow]:
        """Return the subscribers of a partition, at least as new as the last version that was read."""
        return map(_row, self._items(_partition_key(partition)))

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return the topics that may have subscribers."""
        changed = self.versions(partitions_of(realm, topics))
        if SubscriberPartition(realm, None) in changed:
            return topics
        return [topic for topic in topics if SubscriberPartition(realm, topic) in changed]

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""
        items = self._items(subscriber_partition(realm, pattern))
        found = [item for item in items if (item["match"], item["uri"]) == (pattern.match.value, pattern.uri)]
        return [Attached(SessionId(int(item["session"])), moment(item["created_at"])) for item in found]

    @property
    def _changes(self) -> DynamoSubscriberChanges:
        return DynamoSubscriberChanges(self.table)

    def _items(self, partition: str) -> Iterator[Item]:
        return self.table.query(attr("pk").eq(partition) & attr("sk").begins_with(SUBSCRIBER))


def _partition_key(partition: SubscriberPartition) -> str:
    return (
        pattern_subscribers_partition(partition.realm)
        if partition.topic is None
        else topic_subscribers_partition(partition.realm, partition.topic)
    )


def _row_item(subscriber: Subscriber, *, at: datetime, expires_at: datetime) -> Item:
    listener = subscriber.listener
    return {
        "connection": subscriber.connection,
        "match": subscriber.pattern.match.value,
        "uri": subscriber.pattern.uri,
        "session": listener.session,
        "authid": listener.authid,
        "authrole": listener.authrole,
        "created_at": milliseconds(at),
        **ttl(expires_at),
    }


def _row(item: Item) -> SubscriberRow:
    listener = Listener(SessionId(int(item["session"])), item["authid"], item["authrole"])
    subscriber = Subscriber(ConnectionId(item["connection"]), _pattern(item), listener)
    return SubscriberRow(subscriber, datetime.fromtimestamp(int(item["expires_at"]), UTC))


def _version(item: Item) -> PartitionVersion:
    return PartitionVersion(int(item["version"]), tuple(map(_change, item["changes"])))


def _change(item: Item) -> SubscriberChange:
    return SubscriberChange(ConnectionId(item["connection"]), _pattern(item), _row(item) if "session" in item else None)


def _pattern(item: Item) -> TopicPattern:
    return TopicPattern(MatchPolicy(item["match"]), item["uri"])
