"""A subscriber receives the backfill and then all later events, under any interleaving and crashes.

The router's delivery, its directory and the writer are the product's. Between any two of their reads and writes,
other actors read and write, in an order that hypothesis chooses.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import NumberedPublication
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.payloads import RETAIN_HEADER, RETAINED
from signalbox.live.model.effects import Post
from signalbox.live.model.state import ConnectionId, Session
from signalbox.live.outbox.decisions import OutboxState
from signalbox.live.outbox.items import BackfillRequest, ItemId, OutboxItem, item_body, parse_item, reply_item
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.outbox.results import DeliveryOutcome
from signalbox.live.outbox.snapshots import ConnectionSnapshot, Owner, SnapshotRequest
from signalbox.live.outbox.writer import OutboxWriter, ReceivedItem
from signalbox.live.router.decoding import logged_event, publication_metadata
from signalbox.live.router.directory import (
    CachedSubscriberDirectory,
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
)
from signalbox.live.router.distributor import Distributor, OutboxMessage
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import RequestId, SessionId, Subscribed
from signalbox.live.wamp.options import AfterSequence, AfterTime, BackfillStart, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.live import MemoryConnections, MemoryTopicLog
from tests.fakes.live_limits import unlimited
from tests.fakes.parallel import last_first
from tests.unit.exchange.routing.naive_sqs import as_received
from tests.unit.exchange.routing.routing_world import MemorySentCopies
from tests.unit.live.session.stage import ADMIN, NOW, REALM, joined
from tests.unit.live.session.turns import Turns

CONNECTION = ConnectionId("c")
EXCHANGE = ExchangeRecord(REALM, None, NOW, live=LiveSettings())
LISTENER = Listener(SessionId(9129137332), "root", "admin")
LATER = NOW + timedelta(hours=2)


@dataclass
class Log(MemoryTopicLog):
    """A log with other actions between any two accesses."""

    step: Callable[[], None] = lambda: None

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:  # type: ignore[override]
        for event in events:
            self.step()
            log = self.logged[realm].setdefault(event.topic, [])
            if event.sequence not in [one.sequence for one in log]:
                log.append(event)
        self.step()

    def newest_first(self, *given: Any, **limits: Any) -> Iterator[LoggedEvent]:
        self.step()
        return super().newest_first(*given, **limits)

    def topics(self, *given: Any, **limits: Any) -> Mapping[RoutingKey, datetime]:
        self.step()
        return super().topics(*given, **limits)

    def retained(self, realm: ExchangeName, pattern: TopicPattern) -> list[LoggedEvent]:
        self.step()
        return super().retained(realm, pattern)


@dataclass
class Table:
    """Subscribers as the adapter writes them: the row first, then the version with the newest changes.

    Earlier changes are written to chunks before they are removed from the version; some chunks expire early.
    """

    step: Callable[[], None]
    kept_changes: int
    stored: dict[SubscriberPartition, dict[ConnectionId, SubscriberRow]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    numbers: dict[SubscriberPartition, PartitionVersion] = field(default_factory=dict)
    forgets_each: int = 0
    beside: dict[SubscriberPartition, dict[int, SubscriberChange]] = field(default_factory=lambda: defaultdict(dict))

    def versions(self, buckets: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        self.step()
        return {one: self.numbers[one] for one in buckets if one in self.numbers}

    def changes(self, bucket: SubscriberPartition, numbers: range) -> Mapping[int, SubscriberChange]:
        self.step()
        beside = self.beside[bucket]
        there = [number for number in numbers if not self.forgets_each or number % self.forgets_each]
        return {number: beside[number] for number in there if number in beside}

    def rows(self, bucket: SubscriberPartition) -> Iterable[SubscriberRow]:
        self.step()
        return list(self.stored[bucket].values())

    def attach(self, subscriber: Subscriber) -> None:
        pattern, row = subscriber.pattern, SubscriberRow(subscriber, NOW, LATER)
        bucket = SubscriberPartition(REALM, RoutingKey(pattern.uri) if pattern.match is MatchPolicy.EXACT else None)
        self.step()
        self.stored[bucket][subscriber.connection] = row
        self.step()
        found = self.numbers.get(bucket, PartitionVersion())
        changes = (*found.changes, SubscriberChange(subscriber.connection, pattern, row))
        version = self.numbers[bucket] = PartitionVersion(found.number + 1, changes)
        self._trim(bucket, version)

    def _trim(self, bucket: SubscriberPartition, version: PartitionVersion) -> None:
        first, taken = version.number - len(version.changes) + 1, len(version.changes) - self.kept_changes
        self.step()
        self.beside[bucket].update(enumerate(version.changes[: max(taken, 0)], start=first))
        self.step()
        found = self.numbers[bucket]
        if taken > 0 and found.number - len(found.changes) + 1 == first:
            self.numbers[bucket] = PartitionVersion(found.number, found.changes[taken:])


@dataclass
class Outboxes:
    """One de-duplicating outbox and its connection. Some calls fail."""

    step: Callable[[], None]
    refusals: list[bool]
    known: set[tuple[ConnectionId, ItemId]] = field(default_factory=set)
    queue: list[tuple[MessageId, OutboxItem]] = field(default_factory=list)

    def put(self, item: OutboxItem) -> None:
        self._put(OutboxMessage(CONNECTION, item.item_id, item_body(item)))

    def send(self, postings: Sequence[OutboxMessage]) -> Collection[int]:
        return [place for place, posting in enumerate(postings) if not self._put(posting)]

    def _put(self, posting: OutboxMessage) -> bool:
        self.step()
        if posting.text.find('"kind":"events"') > 0 and self.refusals and self.refusals.pop():
            return False
        if posting.connection == CONNECTION and (CONNECTION, posting.item_id) not in self.known:
            self.known.add((CONNECTION, posting.item_id))
            self.queue.append((MessageId(f"m{len(self.known)}"), parse_item(posting.text)))
        return True


@dataclass
class MemorySnapshots:
    """The snapshots of a connection whose session keeps every subscription."""

    step: Callable[[], None]
    session: Session
    outbox: OutboxState = field(default_factory=OutboxState)
    copied: Session | None = None

    def recent(self, requests: Sequence[SnapshotRequest]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        """Return the copy of the session for events, as old as the last reply."""
        self.step()
        (one,) = requests
        session = self.copied if one.has_only_events else self.session
        found = ConnectionSnapshot(session, self.outbox, ADMIN.rights, None, is_complete=False)
        return {one.connection: self.read(one.connection, owner=None) if session is None else found}

    def read(self, connection: ConnectionId, *, owner: Owner | None) -> ConnectionSnapshot:
        self.step()
        return ConnectionSnapshot(self.session, self.outbox, ADMIN.rights, EXCHANGE.live)

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        return 0

    def save(self, connection: ConnectionId, outbox: OutboxState, *, session: Session | None) -> None:
        self.step()
        self.outbox, self.copied = outbox, session


@dataclass
class World:
    """A realm with two routers, a subscriber and the writer of its connection."""

    choices: list[tuple[int, bool]]
    refusals: list[bool] = field(default_factory=list)
    kept_changes: int = 2
    is_retained: bool = False
    finished: int = 0

    def __post_init__(self) -> None:
        self.turns = Turns(iter(self.choices))
        step = self.turns.step
        self.log, self.table = Log(step=step), Table(step, self.kept_changes)
        self.outboxes = Outboxes(step, list(self.refusals))
        self.snapshots = MemorySnapshots(step, joined(ADMIN).session)
        self.connections = MemoryConnections()
        self.deliverer = OutboxWriter(self.snapshots, self.log, self.connections, lambda: NOW)

    def route(self, topic: str, batches: Sequence[int]) -> Callable[[], None]:
        """Return a router of batches of these sizes; each batch is redelivered until it succeeds."""
        left, first = list(batches), [1]
        # What is sent to known subscribers is sent before the lookup, and so before any that are attached meanwhile.
        directory = CachedSubscriberDirectory(self.table, lambda: NOW)
        distributor = Distributor(
            self.log,
            directory,
            self.outboxes,
            last_first,
            now=lambda: NOW,
            longest_write=timedelta(),
            sent=MemorySentCopies(),
            limits=unlimited(),
            is_late=lambda: False,
        )

        def act() -> None:
            while left:
                published = [self._published(topic, first[0] + number) for number in range(left[0])]
                delivery = distributor.store(EXCHANGE, published)
                if not delivery().failed:
                    first[0] += left.pop(0)
            self.finished += 1

        return act

    def subscribe(
        self, pattern: TopicPattern, *, get_retained: bool, history: BackfillStart | None
    ) -> Callable[[], None]:
        """Return the session that executes a SUBSCRIBE, from the beginning again after a crash."""
        is_past_wanted = get_retained or history is not None

        def act() -> None:
            subscriptions = {pattern.subscription_id: pattern}
            self.snapshots.session = replace(self.snapshots.session, subscriptions=subscriptions)
            message = Subscribed(RequestId(1), pattern.subscription_id)
            self.outboxes.put(reply_item(Post(message), ItemId("subscribed"), expects_backfill=is_past_wanted))
            self.table.attach(Subscriber(CONNECTION, pattern, LISTENER))
            if is_past_wanted:
                self.outboxes.put(BackfillRequest(ItemId("past"), pattern, get_retained, history))
            self.finished += 1

        return act

    def come(self, pattern: TopicPattern, count: int) -> Callable[[], None]:
        """Return other subscribers that attach one after the other."""

        def act() -> None:
            for number in range(count):
                self.table.attach(Subscriber(ConnectionId(f"other-{number}"), pattern, LISTENER))
            self.finished += 1

        return act

    def write(self, actors: int) -> Callable[[], None]:
        """Return the writer with batches of ten; a batch in which it crashes is redelivered."""

        def act() -> None:
            while self.finished < actors or self.outboxes.queue:
                self.turns.step()
                batch = self.outboxes.queue[:10]
                incoming = [ReceivedItem(message_id, item, NOW) for message_id, item in batch]
                if (
                    incoming
                    and self.deliverer.deliver(CONNECTION, incoming, until=LATER).outcome is not DeliveryOutcome.BLOCKED
                ):
                    del self.outboxes.queue[: len(batch)]
                if CONNECTION in self.connections.closed:
                    return

        return act

    def _published(self, topic: str, number: int) -> NumberedPublication:
        headers = {RETAIN_HEADER: RETAINED} if self.is_retained else {}
        properties = MessageProperties.of_publication(topic, str(number), headers)
        sent_at = NOW + timedelta(milliseconds=number)
        message = as_received(properties.published(), message_id=f"{topic}-{number}", sent_at=sent_at)
        return NumberedPublication(Publication(message, properties, Routes((), by_alternate=False), "joe"), number)

    def event(self, topic: str, number: int) -> LoggedEvent:
        publication = self._published(topic, number).publication
        return logged_event(publication, publication_metadata(publication), sequence=number)

    @property
    def is_cut(self) -> bool:
        return CONNECTION in self.connections.closed

    def seen(self) -> Mapping[str, list[int]]:
        """Return the sequence numbers by topic that the client received."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for text in self.connections.posted[CONNECTION]:
            message = json.loads(text)
            if message[0] == 36:
                numbers[message[3].get("topic", "a.1")].append(message[3]["_seq"])
        return numbers


def run(
    world: World,
    pattern: TopicPattern,
    batches: Mapping[str, Sequence[int]],
    *,
    history: BackfillStart | None = None,
    get_retained: bool = False,
    others: Sequence[Callable[[], None]] = (),
) -> None:
    actors = [world.route(topic, sizes) for topic, sizes in batches.items()]
    actors += [world.subscribe(pattern, get_retained=get_retained, history=history), *others]
    world.turns.run(*actors, world.write(len(actors)))


turns = st.lists(st.tuples(st.integers(0, 3), st.just(value=False)), max_size=150)
deadly_turns = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([False] * 12 + [True])), max_size=150)
many_turns = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([False] * 30 + [True])), min_size=80, max_size=150)
sizes = st.lists(st.integers(1, 3), min_size=1, max_size=4)
topics = st.fixed_dictionaries({"a.1": sizes, "a.2": sizes})
patterns = st.sampled_from(
    [
        TopicPattern.parse("a.1"),
        TopicPattern.parse("a.", MatchPolicy.PREFIX),
        TopicPattern.parse("a.", MatchPolicy.WILDCARD),
    ]
)
histories = st.sampled_from([AfterTime(NOW - timedelta(days=1)), LastEvents(100)])


def expected(pattern: TopicPattern, batches: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {
        topic: list(range(1, sum(numbers) + 1))
        for topic, numbers in batches.items()
        if pattern.matches(RoutingKey(topic))
    }


@given(turns, patterns, topics, histories, st.integers(0, 2))
def test_a_full_backfill_returns_each_event_once_and_in_order(choices, pattern, batches, history, kept) -> None:
    world = World(choices, kept_changes=kept)

    run(world, pattern, batches, history=history)

    assert world.seen() == expected(pattern, batches)


@given(deadly_turns, st.lists(st.booleans(), max_size=8), patterns, topics, histories)
def test_no_event_is_missed_despite_crashes_and_failed_calls(choices, refusals, pattern, batches, history) -> None:
    world = World(choices, refusals)

    run(world, pattern, batches, history=history)

    if not world.is_cut:  # SUBSCRIBED was unconfirmed: the client reconnects and subscribes again
        seen = {topic: list(dict.fromkeys(numbers)) for topic, numbers in world.seen().items()}
        assert seen == expected(pattern, batches)


@given(many_turns, patterns, topics, histories, st.tuples(*[st.integers(0, 2)] * 2, st.integers(1, 6)))
def test_no_event_is_missed_while_other_subscribers_are_added(choices, pattern, batches, history, numbers) -> None:
    kept, forgets_each, count = numbers
    world = World(choices, kept_changes=kept)
    world.table.forgets_each = forgets_each
    for number in range(count):  # cached by the routers: changes are read only if the rows are not fewer
        world.table.attach(Subscriber(ConnectionId(f"early-{number}"), pattern, LISTENER))

    run(world, pattern, batches, history=history, others=[world.come(pattern, count)] * 2)

    if not world.is_cut:
        seen = {topic: list(dict.fromkeys(numbers)) for topic, numbers in world.seen().items()}
        assert seen == expected(pattern, batches)


@given(turns, patterns, topics, st.integers(1, 4))
def test_events_after_the_last_n_follow_without_a_gap(choices, pattern, batches, count) -> None:
    world = World(choices)

    run(world, pattern, batches, history=LastEvents(count))

    for topic, numbers in world.seen().items():
        last = sum(batches[topic])
        assert numbers == list(range(last - len(numbers) + 1, last + 1))
    assert sum(map(len, world.seen().values())) >= min(count, sum(map(sum, (batches["a.1"],))))


@given(turns, st.integers(0, 3), sizes)
def test_events_before_the_start_number_are_not_repeated(choices, more, batches) -> None:
    world, pattern = World(choices), TopicPattern.parse("a.1")
    world.log.append(REALM, [world.event("a.1", 1), world.event("a.1", 2)], live=LiveSettings())

    # The router logged them before it crashed, and sends them to subscribers now.
    run(world, pattern, {"a.1": [2, *batches], "a.2": [more]}, history=AfterSequence(2))

    assert world.seen().get("a.1", []) == list(range(3, 3 + sum(batches)))


@given(turns, patterns, topics)
def test_the_retained_event_precedes_every_later_event(choices, pattern, batches) -> None:
    world = World(choices, is_retained=True)

    run(world, pattern, batches, get_retained=True)

    for topic, last in ((topic, numbers[-1]) for topic, numbers in expected(pattern, batches).items()):
        numbers = world.seen()[topic]
        assert numbers == list(range(numbers[0], last + 1))


@given(turns, patterns, topics)
def test_without_backfill_no_event_after_the_first_is_missed(choices, pattern, batches) -> None:
    world = World(choices)

    run(world, pattern, batches)

    for topic, numbers in world.seen().items():
        assert numbers == list(range(numbers[0], sum(batches[topic]) + 1))


@pytest.mark.parametrize("kept", [0, 2], ids=["read again", "changes read"])
def test_an_event_routed_before_the_subscription_arrives_by_backfill(kept: int) -> None:
    """The router reads subscribers just before the subscription is stored, and sends after the backfill was read."""
    world = World([(0, False)] * 4 + [(1, False)] * 20, kept_changes=kept)

    run(world, TopicPattern.parse("a.", MatchPolicy.PREFIX), {"a.1": [1, 1]}, history=LastEvents(5))

    assert world.seen() == {"a.1": [1, 2]}
