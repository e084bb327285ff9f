"""Subscribers in the table `Live`: a row for each, and a version for each partition that a router reads at once.

The version's item has the newest changes, so that a router that knows what was there before needs nothing else; those
before are beside it for a while (`live_changes.py`). A row is written first and the version raised then: whoever reads
the new version finds the row, and who reads the old one has put its events into the log before.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Key

from signalbox.aws.exchange.routing_table import every_key
from signalbox.aws.live.changes import DynamoChanges
from signalbox.aws.live.items import (
    SUBSCRIBER,
    bucket,
    bucket_version_key,
    pattern_bucket,
    subscriber_key,
    topic_bucket,
)
from signalbox.aws.shared.dynamodb import Item, every_item, milliseconds, moment
from signalbox.exchange.model.routing_ports import ParallelMap, serial_map
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.directory import Bucket, Change, Row, Version
from signalbox.live.session.ports import Attached
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import Match, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


@dataclass(frozen=True, slots=True)
class DynamoSubscribers:
    """`Subscribers`, `SubscriberTable` and `Watchers`."""

    table: "Table"
    parallel_map: ParallelMap = serial_map

    def attach(self, realm: ExchangeName, subscriber: Subscriber, *, at: datetime, expires_at: datetime) -> None:
        """Let routers find a subscriber. When this has returned, every router that looks does; doing it twice is fine.

        After `expires_at` it may be forgotten.
        """
        row = _row_item(subscriber, at=at, expires_at=expires_at)
        self.table.put_item(Item=subscriber_key(realm, subscriber.pattern, subscriber.connection) | row)
        self._changes.add(bucket(realm, subscriber.pattern), [row], at=at)

    def detach(self, realm: ExchangeName, patterns: Collection[TopicPattern], connection: ConnectionId) -> None:
        """Take subscribers of one connection away; one that is gone already is fine.

        Rows go 25 a call. A version is raised for each topic, several at a time: a session may have a thousand.
        """
        gone: dict[str, list[Item]] = {}
        with self.table.batch_writer() as batch:
            for pattern in patterns:
                batch.delete_item(Key=subscriber_key(realm, pattern, connection))
                change = {"connection": connection, "match": pattern.match.value, "uri": pattern.uri}
                gone.setdefault(bucket(realm, pattern), []).append(change)
        now = datetime.now(UTC)
        for _ in self.parallel_map(lambda partition: self._changes.add(partition, gone[partition], at=now), gone):
            pass

    def versions(self, buckets: Collection[Bucket]) -> Mapping[Bucket, Version]:
        """Return the versions of those of the buckets that were ever changed, in one read."""
        by_partition = {_partition(one): one for one in buckets}
        items = every_key(self.table, [bucket_version_key(partition) for partition in by_partition])
        return {by_partition[item["pk"]]: _version(item) for item in items}

    def changes(self, bucket: Bucket, numbers: range) -> Mapping[int, Change]:
        """Return changes that a version has no more, by their numbers: those asked for that are kept, and others."""
        kept = self._changes.kept(_partition(bucket), numbers)
        return {number: _change(item) for number, item in kept.items()}

    def rows(self, bucket: Bucket) -> Iterable[Row]:
        """Return the subscribers of a bucket, none older than the last version that was read."""
        return map(_row, self._items(_partition(bucket)))

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return those of some topics that somebody may be subscribed to."""
        buckets = [Bucket(realm, None), *(Bucket(realm, topic) for topic in topics)]
        changed = self.versions(buckets)
        if Bucket(realm, None) in changed:
            return topics
        return [topic for topic in topics if Bucket(realm, topic) in changed]

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""
        items = self._items(bucket(realm, pattern))
        there = [item for item in items if (item["match"], item["uri"]) == (pattern.match.value, pattern.uri)]
        return [Attached(SessionId(int(item["session"])), moment(item["created_at"])) for item in there]

    @property
    def _changes(self) -> DynamoChanges:
        return DynamoChanges(self.table)

    def _items(self, partition: str) -> Iterator[Item]:
        condition = Key("pk").eq(partition) & Key("sk").begins_with(SUBSCRIBER)
        return every_item(self.table.query, {"KeyConditionExpression": condition, "ConsistentRead": True})


def _partition(found: Bucket) -> str:
    return pattern_bucket(found.realm) if found.topic is None else topic_bucket(found.realm, found.topic)


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
        "expires_at": round(expires_at.timestamp()),
    }


def _row(item: Item) -> Row:
    listener = Listener(SessionId(int(item["session"])), item["authid"], item["authrole"])
    subscriber = Subscriber(ConnectionId(item["connection"]), _pattern(item), listener)
    return Row(subscriber, datetime.fromtimestamp(int(item["expires_at"]), UTC))


def _version(item: Item) -> Version:
    return Version(int(item["version"]), tuple(map(_change, item["changes"])))


def _change(item: Item) -> Change:
    return Change(ConnectionId(item["connection"]), _pattern(item), _row(item) if "session" in item else None)


def _pattern(item: Item) -> TopicPattern:
    return TopicPattern(Match(item["match"]), item["uri"])
