"""The subscribers of realms, as the sessions of a function instance look them up."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.ports import Attached
from signalbox.live.procedures.realm_subscribers import (
    ANNOUNCED_AT_ONCE,
    ANNOUNCED_EACH,
    MAXIMUM_OF_ANONYMOUS,
    MAXIMUM_OF_REALM,
    MAXIMUM_OF_USER,
    CachedRealmSubscribers,
)
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


@dataclass
class Count:
    """An instance's view of a realm, at a `moment`; `other` is that of another instance."""

    partitions: Partitions = field(default_factory=Partitions)
    moment: datetime = START
    here: CachedRealmSubscribers = field(init=False)
    other: CachedRealmSubscribers = field(init=False)

    def __post_init__(self) -> None:
        self.here, self.other = (
            CachedRealmSubscribers(CachedSubscriberDirectory(self.partitions, lambda: self.moment)) for _ in range(2)
        )

    def fill(self, weight: int, *, user: str = "alice", first: int = 0) -> None:
        """Attach wildcards of ten components, of sessions that have 100 each."""
        for number in range(first, first + weight // 10):
            listener = Listener(SessionId(1_000 + number // 100), user, "subscriber")
            self.partitions.add(wildcard(number), listener=listener)

    def room(self, user: str = "alice", *, is_anonymous: bool = False) -> int:
        return self.here.room(REALM, user, is_anonymous=is_anonymous)

    def later(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def wildcard(number: int) -> TopicPattern:
    return TopicPattern(MatchPolicy.WILDCARD, f"w.{number}..b.c.d.e.f.g.h")


def subscriber(number: int, listener: Listener = ALICE) -> Subscriber:
    return Subscriber(ConnectionId(f"c{number}"), wildcard(number), listener)


def test_a_user_has_a_part_of_a_realm() -> None:
    count = Count()
    count.fill(MAXIMUM_OF_USER - 10)

    assert [count.room(), count.room("bob"), count.room("eve", is_anonymous=True)] == [
        10,
        MAXIMUM_OF_USER,
        MAXIMUM_OF_ANONYMOUS,
    ]


def test_exact_subscriptions_take_no_room_and_short_patterns_that_of_four_words() -> None:
    count = Count()
    count.partitions.add(PREFIX, EXACT)
    count.room()
    for pattern in (EXACT, TopicPattern.parse("other"), PREFIX):
        count.here.reserve(REALM, Subscriber(ConnectionId("new"), pattern, ALICE))

    assert count.room() == MAXIMUM_OF_USER - 2 * 4


def test_sessions_without_a_secret_share_a_part() -> None:
    count = Count()
    count.fill(MAXIMUM_OF_ANONYMOUS, user="guest")

    assert (count.room("guest", is_anonymous=True), count.room()) == (0, MAXIMUM_OF_USER)


def test_all_users_of_a_realm_have_a_limit_together() -> None:
    count = Count()
    for number in range(MAXIMUM_OF_REALM // MAXIMUM_OF_USER):
        count.fill(MAXIMUM_OF_USER, user=f"user{number}", first=number * MAXIMUM_OF_USER)

    assert (count.room(), count.room("user1"), count.room("guest", is_anonymous=True)) == (0, 0, 0)


@pytest.mark.parametrize(("times", "room"), [(8, MAXIMUM_OF_USER), (10, 0)])
def test_a_user_who_exceeds_its_part_takes_a_fifth_from_others_up_to_twice_the_realm(times: int, room: int) -> None:
    """Several instances that decide at the same time may each permit a whole part."""
    count = Count()
    count.fill(times * MAXIMUM_OF_ANONYMOUS)

    assert (count.room() <= 0, max(count.room("bob"), 0)) == (True, room)


def test_what_a_user_no_longer_has_is_free_after_a_second_and_needs_no_release() -> None:
    count = Count()
    count.fill(MAXIMUM_OF_USER)
    assert count.room() == 0
    count.partitions.found.clear()

    count.later(1)
    assert count.room() == 0
    count.later(0.1)
    assert count.room() == MAXIMUM_OF_USER


def test_expired_subscriptions_take_no_room() -> None:
    count = Count()
    count.fill(MAXIMUM_OF_USER)
    assert count.room() == 0

    count.later(7_200)

    assert count.room() == MAXIMUM_OF_USER


def test_a_realm_with_room_is_read_every_ten_seconds() -> None:
    count = Count()
    for _ in range(5):
        assert count.room() == MAXIMUM_OF_USER
        count.later(5)

    assert count.partitions.asked == 2


def test_the_reads_of_watched_topics_count_too() -> None:
    count = Count()
    for _ in range(5):
        count.here.watched(REALM, [ON_JOIN])
        count.later(9)
        count.room()
        count.later(9)

    assert count.partitions.asked == 5


def test_a_decision_counts_before_the_subscriber_is_attached() -> None:
    count = Count()
    assert count.room() == MAXIMUM_OF_USER

    for number in (1, 2, 2):
        count.here.reserve(REALM, subscriber(number))
    assert count.room() == MAXIMUM_OF_USER - 20
    count.partitions.add(wildcard(7), listener=ALICE)
    count.later(11)
    count.here.reserve(REALM, Subscriber(ConnectionId("c7"), wildcard(7), ALICE))
    assert count.room() == MAXIMUM_OF_USER - 30


def test_a_decision_whose_subscriber_is_never_attached_is_forgotten() -> None:
    count = Count()
    count.room()
    count.here.reserve(REALM, subscriber(1))

    for _ in range(4):
        assert count.room() == MAXIMUM_OF_USER - 10
        count.later(25)

    assert count.room() == MAXIMUM_OF_USER


def test_an_attached_subscriber_is_counted_once() -> None:
    count = Count()
    count.room()
    count.here.reserve(REALM, subscriber(7))
    count.partitions.add(wildcard(7))

    count.later(11)

    assert count.room() == MAXIMUM_OF_USER - 10


def test_no_more_than_the_part_of_a_user_is_permitted_by_each_instance() -> None:
    """A wave of sessions that subscribe at the same moment: one user does not fill a realm."""
    count = Count()
    permitted = 0
    for instance in (count.here, count.other):
        for number in range(2 * MAXIMUM_OF_USER // 10):
            if instance.room(REALM, "alice", is_anonymous=False) >= 10:
                instance.reserve(REALM, subscriber(number))
                permitted += 10

    assert permitted == 2 * MAXIMUM_OF_USER


def test_the_changes_of_subscriptions_that_are_announced_are_limited_for_each_user() -> None:
    times = [START]
    found = CachedRealmSubscribers(CachedSubscriberDirectory(Partitions(), lambda: times[-1]))

    at_once = [found.may_announce(REALM, "mallory") for _ in range(ANNOUNCED_AT_ONCE + 1)]

    assert at_once == [True] * ANNOUNCED_AT_ONCE + [False]
    assert found.may_announce(REALM, "alice")
    times.append(START + ANNOUNCED_EACH)
    assert [found.may_announce(REALM, "mallory") for _ in range(2)] == [True, False]
