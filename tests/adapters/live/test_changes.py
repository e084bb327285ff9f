"""Change lists of subscribers in DynamoDB, under crashes and concurrent writers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.aws.live.items import CHUNK, pattern_subscribers_partition, subscriber_key, subscriber_version_key
from signalbox.aws.live.subscribers import (
    CHUNKS_KEPT_FOR,
    FULL,
    LISTED_BYTES,
    MOST_AT_ONCE,
    TRIMMED_FROM,
    DynamoSubscriberChanges,
    DynamoSubscribers,
    _size,
)
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.directory import CachedSubscriberDirectory, SubscriberPartition, SubscriberRow
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.live.session.turns import Turns

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
REALM, TOPIC = ExchangeName("xs_trial.fifo"), RoutingKey("trial.a")
PREFIX = TopicPattern.parse("trial.", MatchPolicy.PREFIX)
PARTITION = pattern_subscribers_partition(REALM)
EARLY = 100  # more than any test changes: rows are read if they are fewer than the changes
MANY = 320  # and as many as a list has changes
LEAVER = ConnectionId("leaver")
LISTENER = Listener(SessionId(7), "joe", "subscriber")
WRITES = ("UpdateItem", "PutItem")


class Killed(BaseException):
    """Raised where a test kills the function."""


@dataclass(frozen=True, slots=True)
class Reading(DynamoSubscribers):
    """Subscribers that count how often all rows are read."""

    read: list[SubscriberPartition] = field(default_factory=list)

    def rows(self, bucket: SubscriberPartition) -> Iterable[SubscriberRow]:
        self.read.append(bucket)
        return DynamoSubscribers.rows(self, bucket)


@pytest.fixture
def subscribers(live_table) -> Reading:
    return Reading(live_table)


@pytest.fixture
def directory(subscribers: Reading, request: pytest.FixtureRequest) -> CachedSubscriberDirectory:
    """A directory that has cached many subscribers of a realm."""
    early = getattr(request, "param", EARLY)
    put_rows(subscribers.table, *(f"early-{number}" for number in range(early)))
    attach(subscribers, "first")
    directory = CachedSubscriberDirectory(subscribers, lambda: NOW)
    assert len(found(directory)) == early + 1
    subscribers.read.clear()
    return directory


def put_rows(table: Any, *connections: str, realm: ExchangeName = REALM) -> None:
    """Write rows as `attach` does before it raises the version."""
    with table.batch_writer() as rows:
        for one in connections:
            rows.put_item(Item=subscriber_key(realm, PREFIX, ConnectionId(one)) | row_item(one))


def row_item(connection: str) -> dict[str, Any]:
    details = {"session": 7, "authid": "joe", "authrole": "subscriber", "created_at": 0}
    expires_at = round((NOW + timedelta(hours=2)).timestamp())
    return {"connection": connection, "match": "prefix", "uri": PREFIX.uri, "expires_at": expires_at} | details


def attach(subscribers: DynamoSubscribers, *connections: str, realm: ExchangeName = REALM) -> None:
    for connection in connections:
        subscriber = Subscriber(ConnectionId(connection), PREFIX, LISTENER)
        subscribers.attach(realm, subscriber, at=NOW, expires_at=NOW + timedelta(hours=2))


def attach_many(subscribers: DynamoSubscribers, number: int, *, name: str = "c") -> set[str]:
    connections = [f"{name}{one}" for one in range(number)]
    attach(subscribers, *connections)
    return set(connections)


TRIMMED = -(-TRIMMED_FROM // _size(row_item("c10")))
"""The number of listed changes of such rows that the last of their writers trims."""


def prefixes(number: int) -> list[TopicPattern]:
    return [TopicPattern.parse(f"trial.{one}.", MatchPolicy.PREFIX) for one in range(number)]


def found(directory: CachedSubscriberDirectory, realm: ExchangeName = REALM) -> set[str]:
    return {one.connection for one in directory.lookup(realm, [TOPIC])(TOPIC)}


def listed_bytes(table: Any) -> int:
    return sum(map(_size, version(table)["changes"]))


def version(table: Any, partition: str = PARTITION) -> dict[str, Any]:
    return table.get_item(Key=subscriber_version_key(partition))["Item"]


def chunks(table: Any) -> list[dict[str, Any]]:
    """Return the chunks in the order of their keys."""
    items = [item for item in table.scan()["Items"] if item["sk"].startswith(CHUNK)]
    return sorted(items, key=lambda item: item["sk"])


@contextmanager
def before(table: Any, operation: str, act: Callable[[], None]) -> Iterator[list[str]]:
    """Run an action once, before the next call of an operation; yield the calls made."""
    left, calls, events = [act], [], table.client.meta.events

    def called(model: Any, **_: Any) -> None:
        if model.name == operation and left:
            left.pop()()
        calls.append(model.name)

    events.register("before-call.dynamodb", called)
    yield calls
    events.unregister("before-call.dynamodb", called)


def kill() -> None:
    raise Killed


def nothing() -> None:
    pass


def test_a_version_lists_the_newest_changes_and_chunks_have_the_earlier_ones(
    subscribers, directory, live_table
) -> None:
    come = attach_many(subscribers, 40)

    assert come <= found(directory)
    assert subscribers.read == []
    assert 0 < listed_bytes(live_table) < TRIMMED_FROM
    expiry = round((NOW + CHUNKS_KEPT_FOR).timestamp())
    assert {item["expires_at"] for item in chunks(live_table)} == {expiry}


def test_chunks_and_version_have_no_gap_between_them(subscribers, live_table) -> None:
    attach_many(subscribers, 50)

    assert len(chunks(live_table)) > 2
    numbers: list[int] = []
    for chunk in chunks(live_table):
        first = int(chunk["first_number"])
        numbers += range(first, first + len(chunk["changes"]))
    item = version(live_table)
    listed = range(int(item["first_number"]), int(item["version"]) + 1)
    assert len(listed) == len(item["changes"])
    assert [*numbers, *listed] == list(range(numbers[0], numbers[0] + 50))


def test_chunks_are_not_read_as_subscribers(subscribers, live_table) -> None:
    come = attach_many(subscribers, TRIMMED)

    assert len(chunks(live_table)) == 1
    assert {row.subscriber.connection for row in subscribers.rows(SubscriberPartition(REALM, None))} == come


@pytest.mark.parametrize("directory", [MANY], indirect=True)
def test_removing_many_patterns_takes_six_writes(subscribers, directory, live_table) -> None:
    attach(subscribers, LEAVER)
    patterns = [PREFIX, *prefixes(2 * MOST_AT_ONCE - 1)]

    with before(live_table, "PutItem", nothing) as calls:
        subscribers.detach(REALM, patterns, LEAVER)

    assert [one for one in calls if one in WRITES] == ["UpdateItem", "PutItem", "UpdateItem"] * 2
    assert 0 < listed_bytes(live_table) <= LISTED_BYTES
    with before(live_table, "Query", nothing) as calls:
        assert LEAVER not in found(directory)
    assert (calls, subscribers.read) == (["BatchGetItem", "Query"], [])


def test_the_patterns_of_a_full_session_are_written_in_parts(subscribers, live_table) -> None:
    attach(subscribers, LEAVER, "other")

    subscribers.detach(REALM, [*prefixes(999), PREFIX], LEAVER)

    kept = sum(len(item["changes"]) for item in [*chunks(live_table), version(live_table)])
    assert (kept, len(chunks(live_table))) == (1_002, 10)
    assert found(CachedSubscriberDirectory(subscribers, lambda: NOW)) == {"other"}


def test_a_router_that_misses_few_changes_reads_only_the_version(subscribers, directory, live_table) -> None:
    attach_many(subscribers, 40)
    found(directory)
    attach(subscribers, "last")

    with before(live_table, "Query", nothing) as calls:
        assert "last" in found(directory)

    assert calls == ["BatchGetItem"]


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem"], ids=["before the chunk", "behind the chunk"])
def test_a_crash_while_trimming_loses_nothing_and_a_later_writer_trims(
    subscribers, directory, live_table, operation: str
) -> None:
    come = attach_many(subscribers, TRIMMED - 2)
    changes = DynamoSubscriberChanges(live_table)
    put_rows(live_table, "late")
    raised = changes._append(PARTITION, [row_item("late")], at=NOW)

    with pytest.raises(Killed), before(live_table, operation, kill):
        changes._trim(PARTITION, raised, at=NOW)

    assert len(version(live_table)["changes"]) == TRIMMED
    assert come | {"late"} <= found(directory)
    come |= attach_many(subscribers, TRIMMED, name="d")
    assert listed_bytes(live_table) < TRIMMED_FROM
    assert come | {"late"} <= found(directory)
    assert subscribers.read == []


def test_of_two_concurrent_trims_one_succeeds(subscribers, directory, live_table) -> None:
    """The second reads a longer list, and finishes before the first removes what it has written to a chunk."""
    come = attach_many(subscribers, TRIMMED - 2)
    changes = DynamoSubscriberChanges(live_table)
    put_rows(live_table, "one", "two")
    first = changes._append(PARTITION, [row_item("one")], at=NOW)
    second = changes._append(PARTITION, [row_item("two")], at=NOW)

    with before(live_table, "UpdateItem", lambda: changes._trim(PARTITION, second, at=NOW)):
        changes._trim(PARTITION, first, at=NOW)

    assert listed_bytes(live_table) <= LISTED_BYTES
    assert len(chunks(live_table)) == 2
    assert come | {"one", "two"} <= found(directory)
    assert subscribers.read == []


def test_changes_added_during_a_trim_are_kept(subscribers, directory, live_table) -> None:
    come = attach_many(subscribers, TRIMMED - 2)

    def others() -> None:
        come.update(attach_many(subscribers, 3, name="d"))

    put_rows(live_table, "late")
    raised = DynamoSubscriberChanges(live_table)._append(PARTITION, [row_item("late")], at=NOW)
    with before(live_table, "UpdateItem", others):
        DynamoSubscriberChanges(live_table)._trim(PARTITION, raised, at=NOW)

    assert len(version(live_table)["changes"]) == 1 + 3
    assert come | {"late"} <= found(directory)
    assert subscribers.read == []


def test_an_expired_chunk_makes_routers_read_all_rows(subscribers, directory, live_table) -> None:
    come = attach_many(subscribers, 50)
    first, *_ = chunks(live_table)
    live_table.delete_item(Key={"pk": first["pk"], "sk": first["sk"]})

    assert come <= found(directory)
    assert subscribers.read == [SubscriberPartition(REALM, None)]


def full(table: Any) -> None:
    """Add changes without trimming until the list is full."""
    changes = DynamoSubscriberChanges(table)
    while changes._append(PARTITION, [row_item("early-0")] * 100, at=NOW) is not None:
        pass


@pytest.mark.parametrize("directory", [MANY], indirect=True)
def test_a_full_list_is_replaced_and_its_changes_go_to_a_chunk(subscribers, directory, live_table) -> None:
    full(live_table)
    length = len(version(live_table)["changes"])
    assert FULL <= length < FULL + MOST_AT_ONCE
    attach(subscribers, "late")

    assert len(version(live_table)["changes"]) == 1
    assert [len(item["changes"]) for item in chunks(live_table)] == [length]
    assert "late" in found(directory)
    assert attach_many(subscribers, 40) <= found(directory)
    assert subscribers.read == []


def test_a_read_or_crash_before_the_chunk_of_a_full_list_is_written_misses_nothing(
    subscribers, directory, live_table
) -> None:
    full(live_table)
    looked: list[set[str]] = []
    put_rows(live_table, "late")

    def look() -> None:
        looked.append(found(directory))
        raise Killed

    with pytest.raises(Killed), before(live_table, "PutItem", look):
        DynamoSubscriberChanges(live_table).add(PARTITION, [row_item("late")], at=NOW)

    assert "late" in looked[0]
    assert chunks(live_table) == []
    assert attach_many(subscribers, 40) <= found(directory)
    assert listed_bytes(live_table) < TRIMMED_FROM


numbers_of_realms = count(1)


@dataclass
class Crowd:
    """A realm whose sessions attach and detach and whose routers read, with any interleaving of their calls."""

    subscribers: DynamoSubscribers
    turns: Turns
    realm: ExchangeName = field(default_factory=lambda: ExchangeName(f"xs_{next(numbers_of_realms)}.fifo"))
    there: set[str] = field(default_factory=set)
    """Whose coming was answered."""
    going: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    """Whose going was answered."""
    directory: CachedSubscriberDirectory = field(init=False)

    def __post_init__(self) -> None:
        self.directory = CachedSubscriberDirectory(self.subscribers, lambda: NOW)

    def come(self, names: Sequence[str]) -> Callable[[], None]:
        def act() -> None:
            for name in names:
                attach(self.subscribers, name, realm=self.realm)
                self.there.add(name)

        return act

    def go(self, name: str, patterns: Sequence[TopicPattern]) -> Callable[[], None]:
        def act() -> None:
            self.going.add(name)
            self.subscribers.detach(self.realm, [PREFIX, *patterns], ConnectionId(name))
            self.gone.add(name)

        return act

    def look(self, times: int) -> Callable[[], None]:
        def act() -> None:
            for _ in range(times):
                there, gone = set(self.there), set(self.gone)
                seen = found(self.directory, self.realm)
                assert there - self.going <= seen
                assert not gone & seen

        return act


@settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([False] * 12 + [True])), min_size=40, max_size=80),
    st.lists(st.integers(0, 60), min_size=2, max_size=2),
    st.sampled_from([0, 150]),
)
def test_every_attached_subscriber_is_found_under_any_interleaving(live_table, choices, leaving, early) -> None:
    turns = Turns(iter(choices))
    crowd = Crowd(DynamoSubscribers(live_table), turns)
    crowd.there.update(f"early{number}" for number in range(early))
    put_rows(live_table, *crowd.there, realm=crowd.realm)
    crowd.come(["leaver0", "leaver1"])()
    found(crowd.directory, crowd.realm)
    events = live_table.client.meta.events

    def step(**_: Any) -> None:
        turns.step()

    events.register("before-call.dynamodb", step)
    turns.run(
        *(crowd.go(f"leaver{number}", prefixes(patterns)) for number, patterns in enumerate(leaving)),
        *(crowd.come([f"{name}{number}" for number in range(4)]) for name in "ab"),
        crowd.look(4),
    )
    events.unregister("before-call.dynamodb", step)

    left = crowd.there - crowd.gone
    assert (
        found(crowd.directory, crowd.realm)
        == found(CachedSubscriberDirectory(crowd.subscribers, lambda: NOW), crowd.realm)
        == left
    )
