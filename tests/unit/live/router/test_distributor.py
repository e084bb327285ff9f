"""Distribution of a batch: recipients, splitting, and redelivery."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.copy_router import PART_COPIES
from signalbox.exchange.routing.ports import Distribution, HeadChange, NumberedPublication
from signalbox.exchange.routing.sequences import Head
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES, LoggedEvent
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import EventBatch, parse_item
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.decoding import metadata_problem
from signalbox.live.router.directory import SubscriberLookup
from signalbox.live.router.distributor import Distributor, OutboxMessage
from signalbox.live.router.publication_metadata import AcknowledgementTarget, PublicationMetadata, metadata_text
from signalbox.live.router.write_limits import ABOVE_LIMIT
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.messages import PublicationId, RequestId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.allowances import MemoryAllowanceCounter
from tests.fakes.parallel import last_first
from tests.unit.exchange.routing.naive_sqs import START, as_received
from tests.unit.exchange.routing.routing_world import MemorySentCopies

REALM = ExchangeName("xs_trial.fifo")
EXCHANGE = ExchangeRecord(REALM, None, START, live=LiveSettings())
ALL, A = TopicPattern.parse("", MatchPolicy.PREFIX), TopicPattern.parse("a")


@dataclass
class World:
    """`EventLog`, `SubscriberDirectory` and `OutboxSender`; sending to some connections fails."""

    subscribers: list[Subscriber] = field(default_factory=list)
    former: list[Subscriber] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    logged: list[LoggedEvent] = field(default_factory=list)
    sent: list[OutboxMessage] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    exchange: ExchangeRecord = EXCHANGE
    written: list[Sequence[HeadChange]] = field(default_factory=list)
    cannot_write: bool = False
    now: datetime = START
    copies: MemorySentCopies = field(default_factory=MemorySentCopies)
    is_late: bool = False
    part_copies: int = PART_COPIES
    refusing_after: int | None = None

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        assert (realm, live) == (REALM, self.exchange.live)
        self.logged += events

    def append_with(
        self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings, heads: Sequence[HeadChange]
    ) -> bool:
        if self.cannot_write:
            return False
        self.written.append(heads)
        self.append(realm, events, live=live)
        return True

    def lookup(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        assert {one.topic for one in self.logged} >= set(topics)
        return lambda topic: [one for one in self.subscribers if one.pattern.matches(topic)]

    def known(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        return lambda topic: [one for one in self.former if one.pattern.matches(topic)]

    def send(self, postings: Sequence[OutboxMessage]) -> Collection[int]:
        self.calls.append(len(postings))
        is_refusing = self.refusing_after is not None and len(self.sent) >= self.refusing_after
        failed = [place for place, one in enumerate(postings) if is_refusing or one.connection in self.closed]
        self.sent += [one for place, one in enumerate(postings) if place not in failed]
        return failed

    def subscribe(self, connection: str, *patterns: TopicPattern, session: int = 1) -> None:
        listener = Listener(SessionId(session), f"user-{connection}", "subscriber")
        self.subscribers += [Subscriber(ConnectionId(connection), pattern, listener) for pattern in patterns]

    def distributor(self, parallel_map: ParallelMap = serial_map) -> Distributor:
        return Distributor(
            self,
            self,
            self,
            parallel_map,
            now=lambda: self.now,
            longest_write=timedelta(seconds=40),
            sent=self.copies,
            allowance=MemoryAllowanceCounter().instance(),
            is_late=lambda: self.is_late,
            part_copies=self.part_copies,
        )

    def deliver(self, *published: NumberedPublication, parallel_map: ParallelMap = serial_map) -> Collection[str]:
        distribution = self.distributor(parallel_map).store(self.exchange, published)()
        if distribution.failed:  # the router records those of all messages behind a failed one, too
            self.copies.add(distribution.sent, now=self.now)
        return distribution.failed

    def bundles(self, connection: str) -> list[EventBatch]:
        found = [parse_item(one.text) for one in self.sent if one.connection == connection]
        return [one for one in found if isinstance(one, EventBatch)]

    def got(self, connection: str) -> list[tuple[str, int | None]]:
        events = [one.event for bundle in self.bundles(connection) for one in bundle.events]
        return [(event.topic, event.sequence) for event in events]


@pytest.fixture
def world() -> World:
    return World()


def published(
    topic: str, sequence: int, body: str = "1", *, metadata: PublicationMetadata | None = None, attempt: int = 1
) -> NumberedPublication:
    properties = MessageProperties.of_publication(topic, body)
    message = as_received(properties.published(), message_id=f"{topic}-{sequence}", attempt=attempt)
    notes = None if metadata is None else metadata_text(metadata)
    return NumberedPublication(Publication(message, properties, Routes((), by_alternate=False), "joe", notes), sequence)


def test_each_connection_receives_its_events_in_one_ordered_batch(world: World) -> None:
    world.subscribe("c", ALL, A)
    world.subscribe("d", A)
    world.subscribe("e", TopicPattern.parse("other"))

    assert world.deliver(published("a", 1), published("b", 1), published("a", 2)) == set()

    assert world.got("c") == [("a", 1), ("a", 1), ("b", 1), ("a", 2), ("a", 2)]
    assert world.got("d") == [("a", 1), ("a", 2)]
    assert world.calls == [2]
    (bundle,) = world.bundles("d")
    assert (bundle.realm, bundle.user, bundle.item_id) == (REALM, "user-d", world.sent[1].item_id)


def test_a_large_event_is_sent_once_to_a_connection_with_overlapping_patterns(world: World) -> None:
    topic = "a" * 60
    world.subscribe("c", *(TopicPattern.parse(topic[:size], MatchPolicy.PREFIX) for size in range(61)))

    world.deliver(published(topic, 1, json.dumps("x" * 100_000)))

    assert world.got("c") == [(topic, 1)] * 61
    (sent,) = world.sent
    assert len(sent.text) < 110_000


def test_metadata_that_no_session_has_written_are_a_problem() -> None:
    readable = published("a", 1, metadata=PublicationMetadata(PublicationId(1))).publication

    assert metadata_problem(readable) is None
    assert "expected the metadata of a session" in (metadata_problem(replace(readable, notes="yes")) or "")


@pytest.mark.parametrize(("size", "taken"), [(MAXIMUM_EVENT_BYTES, 117), (MAXIMUM_EVENT_BYTES + 1, 130)])
def test_a_user_who_publishes_too_much_by_sqs_is_refused(world: World, size: int, taken: int) -> None:
    """The message of the largest event that is logged whole is larger than the event; a larger one has no payload."""
    large = [published("a", number, "x" * size).publication for number in range(1, 131)]

    refused = world.distributor().refused(EXCHANGE, large)

    assert len(large) - len(refused) == taken
    assert set(refused) <= {one.message.message_id for one in large[taken:]}
    assert all(reason == f"publisher 'joe': {ABOVE_LIMIT}" for reason in refused.values())


def test_the_time_of_sending_counts_and_each_message_once(world: World) -> None:
    """After an outage, a queue's messages are routed faster than they were sent, and some are received again."""
    distributor, large = world.distributor(), published("a", 1, "x" * 120_000, attempt=1).publication
    waiting = [
        replace(large, message=as_received(large.message, message_id="m", sent_at=START + timedelta(seconds=number)))
        for number in range(300)
    ]
    again = published("a", 1, "x" * 120_000, attempt=2).publication

    assert not distributor.refused(EXCHANGE, [*waiting, *300 * [again]])


def test_what_waited_before_the_exchange_was_live_is_counted_when_it_is_received_again(world: World) -> None:
    waiting = 130 * [published("a", 1, "x" * 120_000, attempt=2).publication]
    sent_at = waiting[0].message.sent_at

    assert not world.distributor().refused(replace(EXCHANGE, changed_at=sent_at), waiting)
    assert world.distributor().refused(replace(EXCHANGE, changed_at=sent_at + timedelta(seconds=1)), waiting)


def test_what_sessions_publish_and_administrators_programs_is_not_refused(world: World) -> None:
    """That of sessions was counted there; a program without a user is known by its SenderId."""
    of_session = published("a", 1, "x" * 120_000, metadata=PublicationMetadata(PublicationId(1))).publication
    others = [replace(published("a", 1, "x" * 120_000).publication, publisher=name) for name in ("AIDA", "_")]

    assert not world.distributor().refused(EXCHANGE, 200 * [of_session, *others])


def test_events_without_subscribers_are_logged(world: World) -> None:
    world.deliver(published("a", 1), published("b", 1))

    assert [(one.topic, one.sequence) for one in world.logged] == [("a", 1), ("b", 1)]


def test_the_publication_id_of_the_router_is_the_one_in_the_log(world: World) -> None:
    sent = [published("a", 1), published("a", 2, metadata=PublicationMetadata(PublicationId(5)))]

    world.deliver(*sent)

    ids = [world.distributor().publication_id(one.publication) for one in sent]
    assert ids == [one.publication for one in world.logged]


def test_an_event_reaches_only_its_audience(world: World) -> None:
    for connection, session in (("c", 1), ("d", 2), ("e", 3)):
        world.subscribe(connection, A, session=session)
    audience = Audience(exclude_authid=frozenset({"user-e"}), excluded_publisher=SessionId(1))

    world.deliver(published("a", 1, metadata=PublicationMetadata(PublicationId(5), audience)))

    assert [world.got(connection) for connection in "cde"] == [[], [("a", 1)], []]
    (bundle,) = world.bundles("d")
    assert bundle.events[0].event == replace(world.logged[0], audience=UNRESTRICTED)


def test_a_large_batch_is_split_and_its_parts_are_sent_in_order(world: World) -> None:
    world.subscribe("c", A)
    world.subscribe("d", ALL)

    world.deliver(*(published("a", number, json.dumps("x" * 90_000)) for number in range(1, 6)), published("b", 1))

    assert [len(bundle.events) for bundle in world.bundles("c")] == [2, 2, 1]
    assert [len(bundle.events) for bundle in world.bundles("d")] == [2, 2, 2]
    assert world.calls == [2, 2, 2]


def test_a_failed_batch_is_redelivered_and_not_overtaken(world: World) -> None:
    world.subscribe("c", A)
    world.subscribe("d", A, TopicPattern.parse("b"))
    world.closed = {"c"}

    failed = world.deliver(
        *(published("a", number, json.dumps("x" * 90_000)) for number in range(1, 5)), published("b", 1)
    )

    assert failed == {f"a-{number}" for number in range(1, 5)}
    assert (world.got("c"), len(world.got("d"))) == ([], 5)


@pytest.mark.parametrize("known", [0, 3, 5])
def test_what_is_more_than_an_invocation_can_send_is_sent_by_several_and_nothing_twice(world: World, known) -> None:
    """Of seven connections some are known from the last second, one accepts nothing at first, and one has patterns."""
    world.part_copies, world.is_late = 2, True
    for name in "abcdefg":
        world.subscribe(name, A)
    world.subscribe("g", ALL)
    world.former, world.closed = world.subscribers[:known], {"b"}
    body = json.dumps("x" * 90_000)
    seen: list[int] = []

    for attempt in range(1, 20):
        if not world.deliver(*(published("a", number, body, attempt=attempt) for number in range(1, 6))):
            break
        assert len(world.sent) > sum(seen)
        seen.append(len(world.sent) - sum(seen))
        world.former, world.closed = [], set()

    assert max(seen) <= (2 if known == 0 else 4)
    events = [("a", number) for number in range(1, 6)]
    assert {name: world.got(name) for name in "abcdef"} == dict.fromkeys("abcdef", events)
    assert world.got("g") == [one for one in events for _ in range(2)]


def test_an_event_that_reached_a_connection_for_some_of_its_patterns_is_sent_again(world: World) -> None:
    world.subscribe("c", A)
    world.former = list(world.subscribers)
    world.subscribe("c", ALL)
    world.refusing_after = 1

    assert world.deliver(published("a", 1)) == {"a-1"}
    world.former, world.refusing_after = [], None
    assert world.deliver(published("a", 1, attempt=2)) == set()

    assert [[one.pattern for one in bundle.events] for bundle in world.bundles("c")] == [[A], [A, ALL]]


BY_TOPIC = replace(EXCHANGE, live=LiveSettings(order_by=OrderBy.TOPIC))


def test_no_event_of_a_known_subscription_overtakes_one_of_another_topic(world: World) -> None:
    world.subscribe("c", A)
    world.former = list(world.subscribers)
    world.subscribe("c", TopicPattern.parse("b"))

    world.deliver(published("b", 1), published("a", 1), published("b", 2))

    assert world.got("c") == [("b", 1), ("a", 1), ("b", 2)]


@pytest.mark.parametrize("parallel_map", [serial_map, last_first])
def test_known_subscribers_of_one_topic_receive_events_during_the_lookup(
    world: World, parallel_map: ParallelMap
) -> None:
    world.subscribe("c", A)
    world.former = list(world.subscribers)
    world.subscribe("added", A)

    world.deliver(published("a", 1), published("a", 2), parallel_map=parallel_map)

    assert world.calls == [1, 1]
    assert (world.got("c"), world.got("added")) == ([("a", 1), ("a", 2)], [("a", 1), ("a", 2)])


@pytest.mark.parametrize("parallel_map", [serial_map, last_first])
def test_known_subscribers_receive_events_during_the_lookup_and_added_ones_after_it(
    world: World, parallel_map: ParallelMap
) -> None:
    world.exchange = BY_TOPIC
    world.subscribe("gone", A)
    world.subscribe("c", A, ALL)
    world.former, world.subscribers = world.subscribers[:2], world.subscribers[1:]
    world.subscribe("added", ALL)
    world.closed = {"gone"}

    failed = world.deliver(published("a", 1), published("b", 1), parallel_map=parallel_map)

    assert failed == {"a-1"}
    assert world.calls == [2, 2]
    assert world.got("c") == [("a", 1), ("a", 1), ("b", 1)]
    assert [event.pattern for bundle in world.bundles("c") for event in bundle.events] == [A, ALL, ALL]
    assert world.got("added") == [("a", 1), ("b", 1)]


def test_the_id_of_a_batch_depends_on_its_content(world: World) -> None:
    world.subscribe("c", A)
    for batch in ([1, 2], [1, 2], [2]):
        world.deliver(*(published("a", number) for number in batch))

    first, again, other = (one.item_id for one in world.sent)
    assert first == again != other


def test_no_topic_gives_a_batch_the_id_of_another(world: World) -> None:
    world.subscribe("c", ALL)
    world.deliver(published("a", 1), published("b", 1))
    world.deliver(published(f"a\n{ALL.subscription_id} 1 b", 1))

    first, other = (one.item_id for one in world.sent)
    assert first != other


def test_an_exchange_that_is_not_live_delivers_to_no_connection(world: World) -> None:
    other = replace(EXCHANGE, live=None)

    assert world.distributor().store(other, [published("a", 1)])() == Distribution()
    assert world.distributor().store_with(other, [published("a", 1)], ()) is None
    assert world.deliver() == ()
    assert (world.logged, world.calls) == ([], [])


def test_publishers_that_request_it_receive_published(world: World) -> None:
    waiting = PublicationMetadata(
        PublicationId(5), acknowledge_to=AcknowledgementTarget(ConnectionId("p"), RequestId(3))
    )
    lost = PublicationMetadata(PublicationId(6), acknowledge_to=AcknowledgementTarget(ConnectionId("q"), RequestId(4)))
    notes = (None, PublicationMetadata(PublicationId(4)), waiting, lost)
    publications = [published("a", number, metadata=one).publication for number, one in enumerate(notes, start=1)]
    world.closed = {"q"}

    assert world.distributor().acknowledge(publications) == {"a-4"}

    (posting,) = world.sent
    assert (posting.connection, json.loads(json.loads(posting.text)["message"])) == ("p", [17, 3, 5])


@pytest.mark.parametrize(("seconds", "delay"), [(0.9, None), (1, 41_000), (60, 100_000)])
def test_the_log_tells_a_long_delay_with_the_time_of_its_write(world: World, seconds: float, delay: int | None) -> None:
    world.subscribe("c", A)
    world.now = START + timedelta(seconds=seconds)

    world.deliver(published("a", 1))

    assert [event.delay_ms for event in world.logged] == [delay]
    assert "delay" not in world.sent[0].text


@pytest.mark.parametrize("cannot_write", [False, True])
def test_what_is_stored_with_the_log_is_stored_before_anything_is_sent(world: World, cannot_write) -> None:
    world.subscribe("c", A)
    world.cannot_write = cannot_write
    heads = [HeadChange(RoutingKey("a"), Head(1), Head())]

    delivery = world.distributor().store_with(EXCHANGE, [published("a", 1)], heads)

    assert world.sent == []
    if cannot_write:
        assert (delivery, world.logged) == (None, [])
    else:
        assert delivery is not None
        assert (delivery().failed, world.written, world.got("c")) == (set(), [heads], [("a", 1)])
