"""Subscribers in the table `Live`: a row for each, and a version for each partition that a router reads at once.

The version's item has the newest changes, so that a router that knows what was there before needs nothing else. A row
is written first and the version raised then: whoever reads the new version finds the row, and who reads the old one
has put its events into the log before.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Key

from signalbox.aws.dynamodb import Item, every_item, milliseconds, moment, succeeds
from signalbox.aws.live_items import (
    SUBSCRIBER,
    bucket,
    bucket_version_key,
    pattern_bucket,
    subscriber_key,
    topic_bucket,
)
from signalbox.aws.routing import every_key
from signalbox.exchange.routing_ports import SideBySide, one_by_one
from signalbox.exchange.topics import RoutingKey
from signalbox.live.audience import Listener
from signalbox.live.directory import Bucket, Change, Row, Version
from signalbox.live.live_ports import Subscriber
from signalbox.live.messages import SessionId
from signalbox.live.patterns import Match, TopicPattern
from signalbox.live.session_ports import Attached
from signalbox.live.state import ConnectionId
from signalbox.sarracenia.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

KEPT_CHANGES = 16  # a version's item stays within a read unit or two
TRIMMED_FROM = 32
# Longer than any row of the partition lives; afterwards versions begin where the clock is, so that none comes twice.
VERSIONS_KEPT_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DynamoSubscribers:
    """`Subscribers`, `SubscriberTable` and `Watchers`."""

    table: "Table"
    side_by_side: SideBySide = one_by_one

    def attach(self, realm: ExchangeName, subscriber: Subscriber, *, at: datetime, expires_at: datetime) -> None:
        """Let routers find a subscriber. When this has returned, every router that looks does; doing it twice is fine.

        After `expires_at` it may be forgotten.
        """
        row = _row_item(subscriber, at=at, expires_at=expires_at)
        self.table.put_item(Item=subscriber_key(realm, subscriber.pattern, subscriber.connection) | row)
        self._raise_version(bucket(realm, subscriber.pattern), [row], at=at)

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
        for _ in self.side_by_side(lambda partition: self._raise_version(partition, gone[partition], at=now), gone):
            pass

    def versions(self, buckets: Collection[Bucket]) -> Mapping[Bucket, Version]:
        """Return the versions of those of the buckets that were ever changed, in one read."""
        by_partition = {_partition(one): one for one in buckets}
        items = every_key(self.table, [bucket_version_key(partition) for partition in by_partition])
        return {by_partition[item["pk"]]: _version(item) for item in items}

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

    def _items(self, partition: str) -> Iterator[Item]:
        condition = Key("pk").eq(partition) & Key("sk").begins_with(SUBSCRIBER)
        return every_item(self.table.query, {"KeyConditionExpression": condition, "ConsistentRead": True})

    def _raise_version(self, partition: str, changes: Sequence[Item], *, at: datetime) -> None:
        # The client and not the table: only the former may be shared by threads.
        raised = self.table.meta.client.update_item(
            TableName=self.table.name,
            Key=bucket_version_key(partition),
            UpdateExpression=(
                "SET #version = if_not_exists(#version, :base) + :count, expires_at = :expires_at, "
                "changes = list_append(if_not_exists(changes, :none), :changes)"
            ),
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={
                ":base": milliseconds(at),
                ":count": len(changes),
                ":expires_at": round((at + VERSIONS_KEPT_FOR).timestamp()),
                ":none": [],
                ":changes": list(changes[-TRIMMED_FROM:]),  # with more, routers read all rows again anyway
            },
            ReturnValues="UPDATED_NEW",
        )["Attributes"]
        length = len(raised["changes"])
        if length >= TRIMMED_FROM:
            self._trim(partition, length)

    def _trim(self, partition: str, length: int) -> None:
        """Forget the oldest changes, unless somebody else just did."""
        succeeds(
            lambda: self.table.meta.client.update_item(
                TableName=self.table.name,
                Key=bucket_version_key(partition),
                UpdateExpression="REMOVE " + ", ".join(f"changes[{place}]" for place in range(length - KEPT_CHANGES)),
                ConditionExpression="size(changes) >= :length",
                ExpressionAttributeValues={":length": length},
            )
        )


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
    changes = (
        Change(ConnectionId(one["connection"]), _pattern(one), _row(one) if "session" in one else None)
        for one in item["changes"]
    )
    return Version(int(item["version"]), tuple(changes))


def _pattern(item: Item) -> TopicPattern:
    return TopicPattern(Match(item["match"]), item["uri"])
