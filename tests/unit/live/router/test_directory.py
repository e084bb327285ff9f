"""The subscriber directory: updated by changes while they are stored, and otherwise read again."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.directory import (
    PARTITION_WEIGHT,
    CachedSubscriberDirectory,
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
)
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.live import REALM, START

TOPIC = RoutingKey("trial.a")
PREFIX = TopicPattern.parse("trial.", MatchPolicy.PREFIX)
PATTERNS = SubscriberPartition(REALM, None)
OTHER_REALM = ExchangeName("xs_other.fifo")
LISTED = 2
JOE = Listener(SessionId(7), "joe", "subscriber")


class Unreachable(Exception):
    """Raised when the table does not respond."""


@dataclass
class Table:
    """The prefix subscribers of a realm. Changes are numbered; the version lists the newest two."""

    there: dict[ConnectionId, SubscriberRow] = field(default_factory=dict)
    changed: list[SubscriberChange] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    asked: list[range] = field(default_factory=list)
    read: int = 0
    answers: int = 1_000
    """The number of rows and changes that are returned before the table stops responding."""

    def come(self, *connections: str) -> None:
        for name in connections:
            subscriber = Subscriber(ConnectionId(name), PREFIX, JOE)
            row = self.there[subscriber.connection] = SubscriberRow(subscriber, START, START + timedelta(hours=2))
            self.changed.append(SubscriberChange(subscriber.connection, PREFIX, row))

    def go(self, *connections: str) -> None:
        for name in map(ConnectionId, connections):
            self.there.pop(name, None)
            self.changed.append(SubscriberChange(name, PREFIX, None))

    def versions(self, buckets: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        if PATTERNS not in buckets:
            return {}
        return {PATTERNS: PartitionVersion(len(self.changed), tuple(self.changed[-LISTED:]))}

    def changes(self, bucket: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        assert bucket == PATTERNS
        self.asked.append(numbers)
        self._answer(len(numbers))
        # A chunk may begin before the requested numbers.
        earlier = range(max(1, numbers.start - 3), numbers.stop)
        return {number: self.changed[number - 1] for number in earlier if number not in self.lost}

    def rows(self, bucket: SubscriberPartition) -> Iterator[SubscriberRow]:
        assert bucket == PATTERNS
        self.read += 1
        for row in list(self.there.values()):
            self._answer(1)
            yield row

    def _answer(self, count: int) -> None:
        self.answers -= count
        if self.answers < 0:
            raise Unreachable


@pytest.fixture
def table() -> Table:
    table = Table()
    table.come(*(f"c{number}" for number in range(10)))
    return table


@pytest.fixture
def directory(table: Table) -> CachedSubscriberDirectory:
    """A directory after one lookup."""
    directory = CachedSubscriberDirectory(table, lambda: START)
    found(directory)
    return directory


def found(directory: CachedSubscriberDirectory) -> set[str]:
    return {one.connection for one in directory.lookup(REALM, [TOPIC])(TOPIC)}


@pytest.mark.parametrize("missed", [0, 1, LISTED])
def test_changes_listed_in_the_version_need_no_other_read(
    table: Table, directory: CachedSubscriberDirectory, missed: int
) -> None:
    table.come(*(f"d{number}" for number in range(missed)))

    assert found(directory) == set(table.there)
    assert (table.read, table.asked) == (1, [])


def test_earlier_changes_are_read_by_number(table: Table, directory: CachedSubscriberDirectory) -> None:
    table.come("d", "e")
    table.go("c1", "d")
    table.come("d")

    assert found(directory) == {f"c{number}" for number in (0, 2, 3, 4, 5, 6, 7, 8, 9)} | {"d", "e"}
    assert (table.read, table.asked) == (1, [range(11, 14)])
    assert found(directory) == set(table.there)
    assert len(table.asked) == 1


@pytest.mark.parametrize("lost", [11, 12, 13], ids=["the first", "one in between", "the last"])
def test_a_missing_change_makes_the_directory_read_all_rows(
    table: Table, directory: CachedSubscriberDirectory, lost: int
) -> None:
    table.go("c1", "c2", "c3")
    table.come("d", "e")
    table.lost = {lost}

    assert found(directory) == set(table.there)
    assert (table.read, len(table.asked)) == (2, 1)


@pytest.mark.parametrize(("missed", "read"), [(10, 1), (11, 2)], ids=["as many as rows", "more than rows"])
def test_rows_are_read_if_they_are_fewer_than_the_missed_changes(
    table: Table, directory: CachedSubscriberDirectory, missed: int, read: int
) -> None:
    table.go(*["c1"] * missed)

    assert found(directory) == set(table.there)
    assert (table.read, len(table.asked)) == (read, 2 - read)


def test_a_restarted_version_is_not_mistaken_for_a_cached_one(
    table: Table, directory: CachedSubscriberDirectory
) -> None:
    table.changed.clear()
    table.come("d")

    assert found(directory) == set(table.there)
    assert (table.read, table.asked) == (2, [])


@pytest.mark.parametrize("answers", [0, 4])
def test_a_failed_read_of_rows_is_repeated(table: Table, answers: int) -> None:
    directory = CachedSubscriberDirectory(table, lambda: START)
    table.answers = answers
    with pytest.raises(Unreachable):
        found(directory)
    table.answers = 1_000

    assert found(directory) == set(table.there)


def test_a_failed_read_of_changes_keeps_the_cache(table: Table, directory: CachedSubscriberDirectory) -> None:
    table.go("c1", "c2", "c3")
    table.answers = 0
    with pytest.raises(Unreachable):
        found(directory)
    table.answers = 1_000

    assert found(directory) == set(table.there)
    assert (table.read, table.asked) == (1, [range(11, 12)] * 2)


@pytest.mark.parametrize(("room", "read"), [(-1, 2), (0, 1)], ids=["too heavy", "fits"])
def test_the_least_recently_used_partitions_are_evicted_by_weight(table: Table, room: int, read: int) -> None:
    weight = 3 * PARTITION_WEIGHT + len(table.there) * PREFIX.weight
    directory = CachedSubscriberDirectory(table, lambda: START, maximum_weight=weight + room)
    for _ in range(2):
        found(directory)
    assert table.read == 1

    directory.lookup(OTHER_REALM, [])
    assert found(directory) == set(table.there)

    assert table.read == read


def test_a_partition_weighs_what_its_subscribers_do_after_each_change(table: Table) -> None:
    directory = CachedSubscriberDirectory(table, lambda: START)
    for _ in range(3):
        table.come("d", "e")
        table.go("c1", "d")
        found(directory)

    cached = directory._cache[PATTERNS]
    assert (cached.count, cached.weight) == (len(table.there), PARTITION_WEIGHT + len(table.there) * PREFIX.weight)
    assert directory._weight == sum(one.weight for one in directory._cache.values())
    for name in list(table.there):
        table.go(name)
        found(directory)
    assert (cached.rows, cached.count, cached.weight) == ({}, 0, PARTITION_WEIGHT)


@pytest.mark.parametrize(("seconds", "is_known"), [(0, True), (1, True), (1.1, False)])
def test_subscribers_are_known_for_a_second_after_the_read(table: Table, seconds: float, *, is_known: bool) -> None:
    moments = [START]
    directory = CachedSubscriberDirectory(table, lambda: moments[-1])
    assert directory.known(REALM, [TOPIC])(TOPIC) == []
    found(directory)
    table.come("d")
    table.answers = 0

    moments.append(START + timedelta(seconds=seconds))
    known = directory.known(REALM, [TOPIC])(TOPIC)

    assert {one.connection for one in known} == (set(table.there) - {"d"} if is_known else set())


def test_a_lookup_returns_all_subscribers_however_long_it_takes(table: Table) -> None:
    moments = iter([START, START + timedelta(minutes=1)])

    assert found(CachedSubscriberDirectory(table, lambda: next(moments))) == set(table.there)
