"""The subscribers of realms, as the sessions of a function instance look them up."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.ports import Attached
from signalbox.live.procedures.realm_subscribers import CachedRealmSubscribers
from signalbox.live.router.directory import (
    CachedSubscriberDirectory,
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
    partition_of,
)
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.fakes.live import REALM, START

ON_JOIN, ON_LEAVE = RoutingKey("wamp.session.on_join"), RoutingKey("wamp.session.on_leave")
ALICE = Listener(SessionId(7), "alice", "admin")


@dataclass
class Partitions:
    """The subscribers of patterns and topics; `reads` has the full reads of partitions, `asked` those of versions."""

    found: dict[SubscriberPartition, list[SubscriberRow]] = field(default_factory=dict)
    reads: list[SubscriberPartition] = field(default_factory=list)
    asked: int = 0

    def add(self, *patterns: TopicPattern, listener: Listener = ALICE) -> None:
        for pattern in patterns:
            subscriber = Subscriber(ConnectionId(f"c{listener.session}"), pattern, listener)
            row = SubscriberRow(subscriber, START, START + timedelta(hours=2))
            self.found.setdefault(partition_of(REALM, pattern), []).append(row)

    def versions(self, partitions: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        self.asked += 1
        return {one: PartitionVersion(len(self.found[one])) for one in partitions if one in self.found}

    def changes(self, partition: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        return {}

    def rows(self, partition: SubscriberPartition) -> Iterable[SubscriberRow]:
        self.reads.append(partition)
        return self.found[partition]


def test_unchanged_subscribers_are_read_once() -> None:
    partitions = Partitions()
    watched = CachedRealmSubscribers(CachedSubscriberDirectory(partitions, lambda: START)).watched
    partitions.add(TopicPattern.parse(ON_JOIN))
    partitions.add(TopicPattern.parse("trial", MatchPolicy.PREFIX))

    for _ in range(3):
        assert watched(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN]
    assert len(partitions.reads) == 2
    partitions.add(TopicPattern.parse("wamp.", MatchPolicy.PREFIX))

    assert watched(REALM, [ON_JOIN, ON_LEAVE]) == [ON_JOIN, ON_LEAVE]


PREFIX, EXACT = TopicPattern.parse("trial", MatchPolicy.PREFIX), TopicPattern.parse("trial")
WILDCARD = TopicPattern.parse("trial.", MatchPolicy.WILDCARD)
BOB = Listener(SessionId(8), "bob", "subscriber")


def test_a_lookup_of_one_pattern_reads_the_version_alone() -> None:
    """The patterns of a realm are read once, however many lookups follow."""
    partitions = Partitions()
    found = CachedRealmSubscribers(CachedSubscriberDirectory(partitions, lambda: START))
    partitions.add(PREFIX, *(TopicPattern.parse(f"trial.{one}", MatchPolicy.PREFIX) for one in range(100)))

    for number in range(10):
        assert found.shared(REALM, [PREFIX, TopicPattern.parse(f"no.{number}", MatchPolicy.PREFIX)]) == [PREFIX]

    assert (partitions.asked, partitions.reads) == (10, [SubscriberPartition(REALM, None)])


def test_a_pattern_is_shared_with_other_sessions() -> None:
    partitions = Partitions()
    found = CachedRealmSubscribers(CachedSubscriberDirectory(partitions, lambda: START))
    partitions.add(PREFIX, EXACT, WILDCARD)
    partitions.add(EXACT, WILDCARD, listener=BOB)

    patterns = [PREFIX, EXACT, WILDCARD]
    assert found.shared(REALM, patterns) == patterns
    assert found.shared(REALM, patterns, without=ALICE.session) == [EXACT, WILDCARD]
    assert found.shared(REALM, patterns, without=BOB.session) == patterns
    assert found.attached(REALM, PREFIX) == [Attached(ALICE.session, START)]
    assert len(found.attached(REALM, EXACT)) == 2


def test_an_expired_subscription_is_not_shared() -> None:
    partitions = Partitions()
    partitions.add(PREFIX)

    found = CachedRealmSubscribers(CachedSubscriberDirectory(partitions, lambda: START + timedelta(hours=2)))

    assert found.shared(REALM, [PREFIX]) == []
