"""No gap and no overlap: whatever overtakes whatever, and whoever dies, a subscriber sees first the past and then all.

The router's delivery, its directory and the writer are the real ones; between any two of their reads and writes others
read and write, and the order is hypothesis' choice.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.records import Exchange, LiveSettings
from signalbox.exchange.model.routing_ports import NumberedPublication
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.decisions import Outbox
from signalbox.live.outbox.items import ItemId, OutboxItem, PastWish, item_text, parse_item, reply
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.outbox.results import End
from signalbox.live.outbox.writer import Deliverer, Desk, Incoming
from signalbox.live.router.decoding import arrived, noted
from signalbox.live.router.directory import Bucket, Change, Directory, Row, Version
from signalbox.live.router.distributor import Distributor, Posting
from signalbox.live.session.effects import Post
from signalbox.live.session.state import ConnectionId, Session
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import RequestId, SessionId, Subscribed
from signalbox.live.wamp.options import AfterSequence, AfterTime, Last, Past
from signalbox.live.wamp.patterns import Match, TopicPattern
from signalbox.live.wamp.payloads import RETAIN, YES
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from tests.fakes.live import MemoryConnections, MemoryTopicLog
from tests.unit.exchange.routing.naive_sqs import as_received
from tests.unit.live.session.stage import ADMIN, NOW, REALM, joined
from tests.unit.live.session.turns import Turns

CONNECTION = ConnectionId("c")
EXCHANGE = Exchange(REALM, None, NOW, live=LiveSettings())
LISTENER = Listener(SessionId(9129137332), "root", "admin")
LATER = NOW + timedelta(hours=2)


@dataclass
class Log(MemoryTopicLog):
    """A log in which other things happen between any two accesses."""

    step: Callable[[], None] = lambda: None

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:  # type: ignore[override]
        for event in events:
            self.step()
            log = self.logged[realm].setdefault(event.topic, [])
            if event.sequence not in [one.sequence for one in log]:
                log.append(event)
        self.step()

    def back_to(self, *given: Any, **told: Any) -> list[LoggedEvent]:
        self.step()
        return super().back_to(*given, **told)

    def topics(self, realm: ExchangeName, pattern: TopicPattern) -> list[RoutingKey]:
        self.step()
        return super().topics(realm, pattern)

    def retained(self, realm: ExchangeName, pattern: TopicPattern) -> list[LoggedEvent]:
        self.step()
        return super().retained(realm, pattern)


@dataclass
class Table:
    """Subscribers, as the adapter keeps them: the row first, and then the version with the newest changes.

    Those before are put beside it, and only then taken out of the version. There, each so many-th is soon forgotten.
    """

    step: Callable[[], None]
    kept_changes: int
    stored: dict[Bucket, dict[ConnectionId, Row]] = field(default_factory=lambda: defaultdict(dict))
    numbers: dict[Bucket, Version] = field(default_factory=dict)
    forgets_each: int = 0
    beside: dict[Bucket, dict[int, Change]] = field(default_factory=lambda: defaultdict(dict))

    def versions(self, buckets: Collection[Bucket]) -> Mapping[Bucket, Version]:
        self.step()
        return {one: self.numbers[one] for one in buckets if one in self.numbers}

    def changes(self, bucket: Bucket, numbers: range) -> Mapping[int, Change]:
        self.step()
        beside = self.beside[bucket]
        there = [number for number in numbers if not self.forgets_each or number % self.forgets_each]
        return {number: beside[number] for number in there if number in beside}

    def rows(self, bucket: Bucket) -> Iterable[Row]:
        self.step()
        return list(self.stored[bucket].values())

    def attach(self, subscriber: Subscriber) -> None:
        pattern, row = subscriber.pattern, Row(subscriber, LATER)
        bucket = Bucket(REALM, RoutingKey(pattern.uri) if pattern.match is Match.EXACT else None)
        self.step()
        self.stored[bucket][subscriber.connection] = row
        self.step()
        found = self.numbers.get(bucket, Version())
        changes = (*found.changes, Change(subscriber.connection, pattern, row))
        version = self.numbers[bucket] = Version(found.number + 1, changes)
        self._trim(bucket, version)

    def _trim(self, bucket: Bucket, version: Version) -> None:
        first, taken = version.number - len(version.changes) + 1, len(version.changes) - self.kept_changes
        self.step()
        self.beside[bucket].update(enumerate(version.changes[: max(taken, 0)], start=first))
        self.step()
        found = self.numbers[bucket]
        if taken > 0 and found.number - len(found.changes) + 1 == first:
            self.numbers[bucket] = Version(found.number, found.changes[taken:])


@dataclass
class Outboxes:
    """One outbox, which takes nothing twice, and the connection behind it. Some calls are not taken."""

    step: Callable[[], None]
    refusals: list[bool]
    known: set[tuple[ConnectionId, ItemId]] = field(default_factory=set)
    queue: list[tuple[MessageId, OutboxItem]] = field(default_factory=list)

    def put(self, item: OutboxItem) -> None:
        self._put(Posting(CONNECTION, item.item_id, item_text(item)))

    def send(self, postings: Sequence[Posting]) -> Collection[int]:
        return [place for place, posting in enumerate(postings) if not self._put(posting)]

    def _put(self, posting: Posting) -> bool:
        self.step()
        if posting.text.find('"kind":"events"') > 0 and self.refusals and self.refusals.pop():
            return False
        if posting.connection == CONNECTION and (CONNECTION, posting.item_id) not in self.known:
            self.known.add((CONNECTION, posting.item_id))
            self.queue.append((MessageId(f"m{len(self.known)}"), parse_item(posting.text)))
        return True


@dataclass
class Desks:
    """What is kept of the connection, whose session wants all that was ever subscribed."""

    step: Callable[[], None]
    session: Session
    outbox: Outbox = field(default_factory=Outbox)

    def read(self, connection: ConnectionId, *, belongs_to: tuple[ExchangeName, UserName] | None) -> Desk:
        self.step()
        return Desk(self.session, self.outbox, ADMIN.rights, EXCHANGE.live)

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        return 0

    def save(self, connection: ConnectionId, outbox: Outbox) -> None:
        self.step()
        self.outbox = outbox


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
        self.desks = Desks(step, joined(ADMIN).session)
        self.connections = MemoryConnections()
        self.deliverer = Deliverer(self.desks, self.log, self.connections, lambda: NOW)

    def route(self, topic: str, batches: Sequence[int]) -> Callable[[], None]:
        """Return a router that has batches of so many messages of a topic; each comes again until it is done."""
        left, first = list(batches), [1]
        distributor = Distributor(self.log, Directory(self.table, lambda: NOW), self.outboxes)

        def act() -> None:
            while left:
                published = [self._published(topic, first[0] + number) for number in range(left[0])]
                if not distributor.deliver(EXCHANGE, published):
                    first[0] += left.pop(0)
            self.finished += 1

        return act

    def subscribe(self, pattern: TopicPattern, *, get_retained: bool, history: Past | None) -> Callable[[], None]:
        """Return the session that carries out a SUBSCRIBE, and from its beginning again when it dies."""
        is_past_wanted = get_retained or history is not None

        def act() -> None:
            subscriptions = {pattern.subscription_id: pattern}
            self.desks.session = replace(self.desks.session, subscriptions=subscriptions)
            message = Subscribed(RequestId(1), pattern.subscription_id)
            self.outboxes.put(reply(Post(message), ItemId("subscribed"), expects_past=is_past_wanted))
            self.table.attach(Subscriber(CONNECTION, pattern, LISTENER))
            if is_past_wanted:
                self.outboxes.put(PastWish(ItemId("past"), pattern, get_retained, history))
            self.finished += 1

        return act

    def come(self, pattern: TopicPattern, count: int) -> Callable[[], None]:
        """Return others who subscribe, one after the other."""

        def act() -> None:
            for number in range(count):
                self.table.attach(Subscriber(ConnectionId(f"other-{number}"), pattern, LISTENER))
            self.finished += 1

        return act

    def write(self, actors: int) -> Callable[[], None]:
        """Return the writer, which has batches of ten; a batch in which it dies comes again."""

        def act() -> None:
            while self.finished < actors or self.outboxes.queue:
                self.turns.step()
                batch = self.outboxes.queue[:10]
                incoming = [Incoming(message_id, item, NOW) for message_id, item in batch]
                if incoming and self.deliverer.deliver(CONNECTION, incoming, until=LATER).end is not End.STUCK:
                    del self.outboxes.queue[: len(batch)]
                if CONNECTION in self.connections.closed:
                    return

        return act

    def _published(self, topic: str, number: int) -> NumberedPublication:
        headers = {RETAIN: YES} if self.is_retained else {}
        envelope = MessageProperties.of_publication(topic, str(number), headers)
        sent_at = NOW + timedelta(milliseconds=number)
        message = as_received(envelope.published(), message_id=f"{topic}-{number}", sent_at=sent_at)
        return NumberedPublication(Publication(message, envelope, Routes((), by_alternate=False), "joe"), number)

    def event(self, topic: str, number: int) -> LoggedEvent:
        publication = self._published(topic, number).publication
        return arrived(publication, noted(publication), sequence=number)

    @property
    def is_cut(self) -> bool:
        return CONNECTION in self.connections.closed

    def seen(self) -> Mapping[str, list[int]]:
        """Return the numbers that the client saw of each topic."""
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
    history: Past | None = None,
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
    [TopicPattern.parse("a.1"), TopicPattern.parse("a.", Match.PREFIX), TopicPattern.parse("a.", Match.WILDCARD)]
)
histories = st.sampled_from([AfterTime(NOW - timedelta(days=1)), Last(100)])


def expected(pattern: TopicPattern, batches: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {
        topic: list(range(1, sum(numbers) + 1))
        for topic, numbers in batches.items()
        if pattern.matches(RoutingKey(topic))
    }


@given(turns, patterns, topics, histories, st.integers(0, 2))
def test_who_asks_for_everything_gets_everything_once_and_in_order(choices, pattern, batches, history, kept) -> None:
    world = World(choices, kept_changes=kept)

    run(world, pattern, batches, history=history)

    assert world.seen() == expected(pattern, batches)


@given(deadly_turns, st.lists(st.booleans(), max_size=8), patterns, topics, histories)
def test_whoever_dies_and_whatever_is_refused_nothing_is_missed(choices, refusals, pattern, batches, history) -> None:
    world = World(choices, refusals)

    run(world, pattern, batches, history=history)

    if not world.is_cut:  # nobody knew whether SUBSCRIBED was posted: the client comes back and asks again
        seen = {topic: list(dict.fromkeys(numbers)) for topic, numbers in world.seen().items()}
        assert seen == expected(pattern, batches)


@given(many_turns, patterns, topics, histories, st.tuples(*[st.integers(0, 2)] * 2, st.integers(1, 6)))
def test_however_many_others_come_meanwhile_nothing_is_missed(choices, pattern, batches, history, numbers) -> None:
    kept, forgets_each, count = numbers
    world = World(choices, kept_changes=kept)
    world.table.forgets_each = forgets_each
    for number in range(count):  # whom routers know already: changes are read where rows are not fewer
        world.table.attach(Subscriber(ConnectionId(f"early-{number}"), pattern, LISTENER))

    run(world, pattern, batches, history=history, others=[world.come(pattern, count)] * 2)

    if not world.is_cut:
        seen = {topic: list(dict.fromkeys(numbers)) for topic, numbers in world.seen().items()}
        assert seen == expected(pattern, batches)


@given(turns, patterns, topics, st.integers(1, 4))
def test_what_comes_after_the_last_few_follows_them_without_a_gap(choices, pattern, batches, count) -> None:
    world = World(choices)

    run(world, pattern, batches, history=Last(count))

    for topic, numbers in world.seen().items():
        last = sum(batches[topic])
        assert numbers == list(range(last - len(numbers) + 1, last + 1))
    assert sum(map(len, world.seen().values())) >= min(count, sum(map(sum, (batches["a.1"],))))


@given(turns, st.integers(0, 3), sizes)
def test_what_came_before_a_number_does_not_come_again(choices, more, batches) -> None:
    world, pattern = World(choices), TopicPattern.parse("a.1")
    world.log.append(REALM, [world.event("a.1", 1), world.event("a.1", 2)], live=LiveSettings())

    # The router has written them before it died, and brings them to subscribers now.
    run(world, pattern, {"a.1": [2, *batches], "a.2": [more]}, history=AfterSequence(2))

    assert world.seen().get("a.1", []) == list(range(3, 3 + sum(batches)))


@given(turns, patterns, topics)
def test_the_latest_state_comes_first_and_then_every_change(choices, pattern, batches) -> None:
    world = World(choices, is_retained=True)

    run(world, pattern, batches, get_retained=True)

    for topic, last in ((topic, numbers[-1]) for topic, numbers in expected(pattern, batches).items()):
        numbers = world.seen()[topic]
        assert numbers == list(range(numbers[0], last + 1))


@given(turns, patterns, topics)
def test_who_asks_for_nothing_of_the_past_misses_nothing_from_the_first_event_on(choices, pattern, batches) -> None:
    world = World(choices)

    run(world, pattern, batches)

    for topic, numbers in world.seen().items():
        assert numbers == list(range(numbers[0], sum(batches[topic]) + 1))


@pytest.mark.parametrize("kept", [0, 2], ids=["read again", "told of changes"])
def test_the_worst_that_can_happen_to_a_subscription(kept: int) -> None:
    """The router looks just before the subscription is stored, and sends its event when the past was read."""
    world = World([(0, False)] * 4 + [(1, False)] * 20, kept_changes=kept)

    run(world, TopicPattern.parse("a.", Match.PREFIX), {"a.1": [1, 1]}, history=Last(5))

    assert world.seen() == {"a.1": [1, 2]}
