"""The cached lookup of the meta topics that have subscribers."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.procedures.subscription_meta import WatchedTopics
from signalbox.live.router.directory import (
    CachedSubscriberDirectory,
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
)
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.fakes.live import REALM, START

ON_JOIN, ON_LEAVE = RoutingKey("wamp.session.on_join"), RoutingKey("wamp.session.on_leave")
ALICE = Listener(SessionId(7), "alice", "admin")


@dataclass
class Partitions:
    """The subscribers of patterns and topics; `reads` counts the full reads of partitions."""

    found: dict[SubscriberPartition, list[SubscriberRow]] = field(default_factory=dict)
    reads: int = 0

    def add(self, pattern: TopicPattern) -> None:
        topic = RoutingKey(pattern.uri) if pattern.match is MatchPolicy.EXACT else None
        subscriber = Subscriber(ConnectionId("c"), pattern, ALICE)
        self.found.setdefault(SubscriberPartition(REALM, topic), []).append(
            SubscriberRow(subscriber, START + timedelta(hours=2))
        )

    def versions(self, partitions: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        return {one: PartitionVersion(len(self.found[one])) for one in partitions if one in self.found}

    def changes(self, partition: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        return {}

    def rows(self, partition: SubscriberPartition) -> Iterable[SubscriberRow]:
        self.reads += 1
        return self.found[partition]


def test_unchanged_subscribers_are_read_once() -> None:
    partitions = Partitions()
    watched = WatchedTopics(CachedSubscriberDirectory(partitions, lambda: START))
    partitions.add(TopicPattern.parse(ON_JOIN))
    partitions.add(TopicPattern.parse("trial", MatchPolicy.PREFIX))

    for _ in range(3):
        assert watched.of(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN]
    assert partitions.reads == 2
    partitions.add(TopicPattern.parse("wamp.", MatchPolicy.PREFIX))

    assert watched.of(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN, ON_LEAVE]
