"""What sessions look up in a realm."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.procedures.overview import Topic
from signalbox.live.procedures.watchers import KnownWatchers, LoggedTopics
from signalbox.live.router.directory import (
    CachedSubscriberDirectory,
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
)
from signalbox.live.session.ports import Attached
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import PublicationId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.fakes.live import REALM, START, MemorySubscribers, MemoryTopicLog

ON_JOIN, ON_LEAVE = RoutingKey("wamp.session.on_join"), RoutingKey("wamp.session.on_leave")
ALICE = Listener(SessionId(7), "alice", "admin")


@dataclass
class Buckets:
    """The subscribers of patterns and topics; `asked` is how often all of a bucket were read."""

    found: dict[SubscriberPartition, list[SubscriberRow]] = field(default_factory=dict)
    asked: int = 0

    def add(self, pattern: TopicPattern) -> None:
        topic = RoutingKey(pattern.uri) if pattern.match is MatchPolicy.EXACT else None
        subscriber = Subscriber(ConnectionId("c"), pattern, ALICE)
        self.found.setdefault(SubscriberPartition(REALM, topic), []).append(
            SubscriberRow(subscriber, START + timedelta(hours=2))
        )

    def versions(self, buckets: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        return {one: PartitionVersion(len(self.found[one])) for one in buckets if one in self.found}

    def changes(self, bucket: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        return {}

    def rows(self, bucket: SubscriberPartition) -> Iterable[SubscriberRow]:
        self.asked += 1
        return self.found[bucket]


def test_topics_are_watched_by_whoever_matches_them_and_asked_for_once() -> None:
    buckets, subscribers = Buckets(), MemorySubscribers()
    watchers = KnownWatchers(CachedSubscriberDirectory(buckets, lambda: START), subscribers)
    buckets.add(TopicPattern.parse(ON_JOIN))
    buckets.add(TopicPattern.parse("trial", MatchPolicy.PREFIX))

    for _ in range(3):
        assert watchers.watched(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN]
    assert buckets.asked == 2
    buckets.add(TopicPattern.parse("wamp.", MatchPolicy.PREFIX))

    assert watchers.watched(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN, ON_LEAVE]


def test_who_is_attached_is_told_by_the_table() -> None:
    subscribers, pattern = MemorySubscribers(), TopicPattern.parse("trial.a")
    subscriber = Subscriber(ConnectionId("c"), pattern, ALICE)
    subscribers.attach(REALM, subscriber, at=START, expires_at=START)

    found = KnownWatchers(CachedSubscriberDirectory(Buckets(), lambda: START), subscribers).attached(REALM, pattern)

    assert found == [Attached(ALICE.session, START)]


def test_topics_are_listed_with_their_latest_that_is_retained() -> None:
    log = MemoryTopicLog()
    for number, topic, is_retained in (
        (1, "trial.b", True),
        (2, "trial.a", False),
        (3, "trial.b", True),
        (4, "x", True),
    ):
        at = START + timedelta(seconds=number)
        log.append(REALM, LoggedEvent(PublicationId(number), RoutingKey(topic), at, is_retained=is_retained))

    assert LoggedTopics(log).beginning_with(REALM, "trial") == [
        Topic(RoutingKey("trial.a")),
        Topic(RoutingKey("trial.b"), START + timedelta(seconds=3)),
    ]
