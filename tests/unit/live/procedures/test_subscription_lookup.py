"""The lookup of a realm's subscribers with a cache."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.procedures.subscription_lookup import CachedSubscriptionLookup
from signalbox.live.router.directory import Bucket, Change, Directory, Row, Version
from signalbox.live.session.ports import Attached
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import Match, TopicPattern
from tests.fakes.live import REALM, START, MemorySubscribers

ON_JOIN, ON_LEAVE = RoutingKey("wamp.session.on_join"), RoutingKey("wamp.session.on_leave")
ALICE = Listener(SessionId(7), "alice", "admin")


@dataclass
class Buckets:
    """The subscribers of patterns and topics; `reads` counts the full reads of buckets."""

    found: dict[Bucket, list[Row]] = field(default_factory=dict)
    reads: int = 0

    def add(self, pattern: TopicPattern) -> None:
        topic = RoutingKey(pattern.uri) if pattern.match is Match.EXACT else None
        subscriber = Subscriber(ConnectionId("c"), pattern, ALICE)
        self.found.setdefault(Bucket(REALM, topic), []).append(Row(subscriber, START + timedelta(hours=2)))

    def versions(self, buckets: Collection[Bucket]) -> Mapping[Bucket, Version]:
        return {one: Version(len(self.found[one])) for one in buckets if one in self.found}

    def changes(self, bucket: Bucket, numbers: range) -> Mapping[int, Change]:
        return {}

    def rows(self, bucket: Bucket) -> Iterable[Row]:
        self.reads += 1
        return self.found[bucket]


def test_unchanged_subscribers_are_read_once() -> None:
    buckets, subscribers = Buckets(), MemorySubscribers()
    lookup = CachedSubscriptionLookup(Directory(buckets, lambda: START), subscribers)
    buckets.add(TopicPattern.parse(ON_JOIN))
    buckets.add(TopicPattern.parse("trial", Match.PREFIX))

    for _ in range(3):
        assert lookup.watched(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN]
    assert buckets.reads == 2
    buckets.add(TopicPattern.parse("wamp.", Match.PREFIX))

    assert lookup.watched(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN, ON_LEAVE]


def test_attached_sessions_are_read_from_the_table() -> None:
    subscribers, pattern = MemorySubscribers(), TopicPattern.parse("trial.a")
    subscriber = Subscriber(ConnectionId("c"), pattern, ALICE)
    subscribers.attach(REALM, subscriber, at=START, expires_at=START)

    found = CachedSubscriptionLookup(Directory(Buckets(), lambda: START), subscribers).attached(REALM, pattern)

    assert found == [Attached(ALICE.session, START)]
