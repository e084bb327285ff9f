"""Subscribers in the table `Live`: one row per subscriber, and one version item per partition.

The version item has the newest changes, so an up-to-date router reads nothing else; chunks keep earlier changes for a
while. A write of the version costs its size, so it lists a few hundred bytes of changes. The row is written before the
version is raised. A router that reads the new version therefore finds the row, and one that reads the old version has
already appended its events to the log.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from signalbox.aws.live.items import (
    SUBSCRIBER,
    chunk_key,
    chunks_between,
    pattern_subscribers_partition,
    subscriber_key,
    subscriber_partition,
    subscriber_version_key,
    topic_subscribers_partition,
)
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment, ttl
from signalbox.aws.shared.expressions import Delete, Item, Put, Update, attr
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.directory import (
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
)
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName

LISTED_BYTES = 200  # of the newest changes that remain in the version item after trimming
TRIMMED_FROM = 700  # so that a write of the version mostly costs one unit
# Per write, and in the list before it: together below DynamoDB's 400 KB, with 700 bytes for the largest change.
MOST_AT_ONCE, FULL = 100, 250
MOST_TRIMMED = 120  # an update expression names each index, and is limited to 300 operators and 4 KB
# Longer than any row of the partition. Later versions start at the current time, so no number is used twice.
VERSIONS_KEPT_FOR = timedelta(days=1)
CHUNKS_KEPT_FOR = timedelta(hours=1)  # few function instances that have not read for this long still exist
VERSION, FIRST_NUMBER, CHANGES = attr("version"), attr("first_number"), attr("changes")


@dataclass(frozen=True, slots=True)
class DynamoSubscriberChanges:
    """The change lists of partitions."""

    table: DynamoTable

    def add(self, partition: str, changes: Sequence[Item], *, at: datetime) -> None:
        """Append changes to a partition: one write per 100 changes, and two more when the list becomes long."""
        for start in range(0, len(changes), MOST_AT_ONCE):
            batch = changes[start : start + MOST_AT_ONCE]
            version = self._append(partition, batch, at=at)
            if version is None:
                self._replace(partition, batch, at=at)
            elif _is_to_be_trimmed(version["changes"], added=len(batch)):
                self._trim(partition, version, at=at)

    def earlier_changes(self, partition: str, numbers: range) -> Mapping[int, Item]:
        """Return the changes of the chunks that overlap `numbers`, by number; expired ones are missing."""
        chunks = attr("pk").eq(partition) & attr("sk").between(*chunks_between(numbers))
        found: dict[int, Item] = {}
        for item in self.table.query(chunks):
            found.update(enumerate(item["changes"], start=int(item["first_number"])))
        return found

    def _append(self, partition: str, changes: Sequence[Item], *, at: datetime) -> Item | None:
        """Raise the version and append to its list; return both, or None without a write if the list is full."""
        update = Update(
            subscriber_version_key(partition),
            sets={
                "version": VERSION.otherwise(milliseconds(at)) + len(changes),
                "first_number": FIRST_NUMBER.otherwise(milliseconds(at) + 1),
                "changes": CHANGES.otherwise([]).extended(changes),
                **ttl(at + VERSIONS_KEPT_FOR),
            },
            condition=CHANGES.not_exists() | CHANGES.size().lt(FULL),
        )
        return self.table.written(update, "UPDATED_NEW")

    def _trim(self, partition: str, version: Item, *, at: datetime) -> None:
        """Write the oldest changes to a chunk, then remove them from the list unless another writer already has.

        A list that starts at the same number starts with the same changes: other writers only append.
        """
        first, oldest = _first_number(version), _oldest(version["changes"])
        self._put_chunk(partition, first, oldest, at=at)
        update = Update(
            subscriber_version_key(partition),
            sets={"first_number": first + len(oldest)},
            # In descending order, which is also right for an emulator that removes the elements one after the other.
            removes=[CHANGES.at(index) for index in reversed(range(len(oldest)))],
            condition=FIRST_NUMBER.eq(first),
        )
        self.table.write(update)

    def _replace(self, partition: str, changes: Sequence[Item], *, at: datetime) -> None:
        """Raise the version and replace its full list, which many concurrent writers or crashed trimmers caused.

        The replaced changes are briefly in no chunk; a router that reads at that time reads all rows.
        """
        update = Update(
            subscriber_version_key(partition),
            sets={
                "first_number": VERSION + 1,
                "version": VERSION + len(changes),
                "changes": list(changes),
                **ttl(at + VERSIONS_KEPT_FOR),
            },
        )
        before = self.table.written(update, "ALL_OLD") or {}
        self._put_chunk(partition, _first_number(before), before["changes"], at=at)

    def _put_chunk(self, partition: str, first: int, changes: Sequence[Item], *, at: datetime) -> None:
        chunk = {"first_number": first, "changes": list(changes)} | ttl(at + CHUNKS_KEPT_FOR)
        key = chunk_key(partition, first=first, last=first + len(changes) - 1)
        self.table.write(Put(key | chunk))


def _is_to_be_trimmed(changes: Sequence[Item], *, added: int) -> bool:
    """Return whether the writer that added the last changes of a list trims it.

    Of concurrent writers only some trim; if one crashes, a later writer trims.
    """
    size = sum(map(_size, changes))
    return size // TRIMMED_FROM > (size - sum(map(_size, changes[-added:]))) // TRIMMED_FROM


def _oldest(changes: Sequence[Item]) -> Sequence[Item]:
    """Return the changes that do not stay in a list."""
    sizes = accumulate(map(_size, reversed(changes)))
    return changes[: sum(size > LISTED_BYTES for size in sizes)][:MOST_TRIMMED]


def _size(change: Item) -> int:
    """Return the bytes of a change in DynamoDB, where a number has half of its digits; in a list it has one more."""
    return (
        sum(len(name) + 1 + (len(text.encode()) if isinstance(text, str) else 9) for name, text in change.items()) + 4
    )


def _first_number(version: Item) -> int:
    return int(version["version"]) - len(version["changes"]) + 1


@dataclass(frozen=True, slots=True)
class DynamoSubscribers:
    """Implementation of `Subscribers` and `SubscriberTable`."""

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
        rows = attr("pk").eq(_partition_key(partition)) & attr("sk").begins_with(SUBSCRIBER)
        return map(_row, self.table.query(rows))

    @property
    def _changes(self) -> DynamoSubscriberChanges:
        return DynamoSubscriberChanges(self.table)


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
    return SubscriberRow(subscriber, moment(item["created_at"]), datetime.fromtimestamp(int(item["expires_at"]), UTC))


def _version(item: Item) -> PartitionVersion:
    return PartitionVersion(int(item["version"]), tuple(map(_change, item["changes"])))


def _change(item: Item) -> SubscriberChange:
    return SubscriberChange(ConnectionId(item["connection"]), _pattern(item), _row(item) if "session" in item else None)


def _pattern(item: Item) -> TopicPattern:
    return TopicPattern(MatchPolicy(item["match"]), item["uri"])
