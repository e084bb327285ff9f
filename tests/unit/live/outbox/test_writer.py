"""The outbox writer under failures, closed sessions and slow clients."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.read_limits import PastTooLarge, ReadsBusy
from signalbox.live.model.effects import Post
from signalbox.live.model.events import dead_letter
from signalbox.live.model.state import ConnectionId, PastRefused, Session, SessionState
from signalbox.live.outbox import writer
from signalbox.live.outbox.backfill import Backfill, BackfillReader
from signalbox.live.outbox.decisions import MAXIMUM_WAIT, TOTALS_SAVED_EVERY, OutboxState, mark_of
from signalbox.live.outbox.delivery import SAVED_EVERY
from signalbox.live.outbox.events import closing_summary, delivery_events
from signalbox.live.outbox.items import (
    BackfillRequest,
    CloseRequest,
    EventBatch,
    ItemId,
    OutboxItem,
    SubscriptionEvent,
    reply_item,
)
from signalbox.live.outbox.ports import PostResult
from signalbox.live.outbox.results import MAXIMUM_IDS, BatchResult, DeliveryOutcome
from signalbox.live.outbox.snapshots import ConnectionSnapshot, Owner, SnapshotRequest
from signalbox.live.outbox.wamp_dialect import MAXIMUM_FRAMES, MAXIMUM_PAGE_BYTES
from signalbox.live.outbox.writer import (
    BACKLOG_CHECKED_AFTER,
    LONGEST_BUSY,
    MAXIMUM_BACKLOG,
    OutboxWriter,
    ReceivedItem,
)
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.authentication import AuthMethod
from signalbox.live.wamp.batches import messages_of
from signalbox.live.wamp.messages import (
    Goodbye,
    Payload,
    PublicationId,
    Published,
    RequestId,
    SessionId,
    Subscribed,
    Unsubscribed,
)
from signalbox.live.wamp.options import AfterSequence, AfterTopicSequences, BackfillStart, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Role
from tests.fakes.live import MemoryConnections, MemoryTopicLog
from tests.unit.live.session.stage import ADMIN, NOW, REALM, WITHOUT_RIGHTS, joined

CONNECTION = ConnectionId("c")
PATTERN = TopicPattern.parse("open.", MatchPolicy.PREFIX)
SUBSCRIPTION = PATTERN.subscription_id
SESSION = replace(joined(ADMIN).session, subscriptions={SUBSCRIPTION: PATTERN})
KNOWN = OutboxState(subscribed=frozenset({SUBSCRIPTION}))


@dataclass
class World:
    """A connection with its snapshot; a post takes `seconds_per_post`."""

    outbox: OutboxState = KNOWN
    session: Session | None = SESSION
    rights: Rights = ADMIN.rights
    live: LiveSettings | None = field(default_factory=LiveSettings)
    moment: datetime = NOW
    seconds_per_post: float = 0
    saved: list[OutboxState] = field(default_factory=list)
    log: MemoryTopicLog = field(default_factory=MemoryTopicLog)
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    on_read: Callable[[], None] = lambda: None
    newest_number: int = 0
    looks: int = 0
    maximum_topics: int = 1_000
    redelivered_after: timedelta = timedelta(0)
    is_current: bool = True
    """Whether a batch of events finds current rights and a current session."""
    copied: Session | None = None
    known_rights: Rights | None = None

    def recent(self, requests: Sequence[SnapshotRequest]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        (one,) = requests
        if self.is_current:
            return {one.connection: self.read(one.connection, owner=one.owner)}
        session = self.copied if one.has_only_events else self.session
        rights = self.known_rights or self.rights
        return {one.connection: ConnectionSnapshot(session, self.outbox, rights, None, is_complete=False)}

    def read(self, connection: ConnectionId, *, owner: Owner | None) -> ConnectionSnapshot:
        self.on_read()
        return ConnectionSnapshot(self.session, self.outbox, self.rights, self.live)

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        self.looks += 1
        return self.newest_number

    def save(
        self, connection: ConnectionId, outbox: OutboxState, *, session: Session | None, saved: OutboxState
    ) -> None:
        marks = [*outbox.pending_backfills.values(), *(one.numbers for one in outbox.watermarks.values())]
        if sum(map(len, marks)) > self.maximum_topics:
            raise PastTooLarge("too many topics")
        self.outbox, self.copied = outbox, session
        self.saved.append(outbox)

    def post(self, connection: ConnectionId, text: str, *, is_repeatable: bool) -> PostResult:
        assert not self.log.reading  # the memory is free before the client, which may be slow, gets the first event
        self.moment += timedelta(seconds=self.seconds_per_post)
        return self.connections.post(connection, text, is_repeatable=is_repeatable)

    def close(self, connection: ConnectionId) -> None:
        self.connections.close(connection)

    def deliver(self, *items: OutboxItem, waited: timedelta = timedelta(0), seconds: float = 60) -> BatchResult:
        incoming = [ReceivedItem(MessageId(f"m-{item.item_id}"), item, self.moment - waited) for item in items]
        deliverer = OutboxWriter(self, self.log, self, lambda: self.moment, redelivered_after=self.redelivered_after)
        return deliverer.deliver(CONNECTION, incoming, until=self.moment + timedelta(seconds=seconds))

    def next_page(self, seconds: float = 60) -> DeliveryOutcome:
        """Deliver a backfill of retained events again, by another function instance."""
        self.log.rows = 0
        return self.deliver(backfill(None, get_retained=True), seconds=seconds).outcome

    def posted(self) -> list[Any]:
        return [json.loads(text) for text in self.connections.posted[CONNECTION]]

    def numbers_in_frames(self) -> list[int]:
        return [json.loads(text)[3]["_seq"] for one in self.connections.posted[CONNECTION] for text in messages_of(one)]

    def numbers(self) -> list[int]:
        return [message[3]["_seq"] for message in self.posted() if message[0] == 36]


@pytest.fixture
def world() -> World:
    return World()


def event(number: int, topic: str = "open.a", **fields: Any) -> LoggedEvent:
    at = NOW + timedelta(milliseconds=number)
    return replace(
        LoggedEvent(PublicationId(number), RoutingKey(topic), at, Payload((number,)), sequence=number), **fields
    )


def event_batch(*events: LoggedEvent, item: str = "b") -> EventBatch:
    return EventBatch(ItemId(item), REALM, UserName("root"), tuple(SubscriptionEvent(PATTERN, one) for one in events))


def subscribed(*, expects_backfill: bool = True) -> OutboxItem:
    return reply_item(Post(Subscribed(RequestId(1), SUBSCRIPTION)), ItemId("s"), expects_backfill=expects_backfill)


def backfill(history: BackfillStart | None, *, get_retained: bool = False) -> BackfillRequest:
    return BackfillRequest(ItemId("p"), PATTERN, get_retained=get_retained, history=history)


def published(item: str = "1") -> OutboxItem:
    return reply_item(Post(Published(RequestId(1), PublicationId(1))), ItemId(item))


@pytest.mark.parametrize(
    ("result", "end", "begun", "is_closed"),
    [
        (PostResult.POSTED, DeliveryOutcome.DONE, None, False),
        (PostResult.GONE, DeliveryOutcome.GONE, "1", False),
        (PostResult.BUSY, DeliveryOutcome.BLOCKED, None, False),
        (PostResult.UNKNOWN, DeliveryOutcome.BLOCKED, "1", False),
        (PostResult.TOO_LARGE, DeliveryOutcome.UNCONFIRMED, "1", True),
    ],
)
def test_a_reply_is_recorded_before_it_is_posted(world: World, result, end, begun, is_closed) -> None:
    world.connections.results = [result]

    delivered = world.deliver(published())

    assert world.saved[0].unconfirmed_reply == "1"
    assert (delivered.outcome, world.outbox.unconfirmed_reply, CONNECTION in world.connections.closed) == (
        end,
        begun,
        is_closed,
    )


def test_the_replies_of_a_batch_are_recorded_twice_together(world: World) -> None:
    world.deliver(*(published(str(number)) for number in range(10)))

    assert [one.unconfirmed_reply for one in world.saved] == ["0", None]
    assert world.outbox.done == tuple(map(str, range(10)))


@pytest.mark.parametrize("number", range(3))
def test_a_crash_at_any_reply_of_a_batch_closes_the_connection_and_repeats_none(world: World, number: int) -> None:
    replies = [published(str(one)) for one in range(3)]
    posts = iter([PostResult.POSTED] * number)
    world.connections.post = lambda *_, **__: next(posts)  # type: ignore[method-assign]
    with pytest.raises(StopIteration):
        world.deliver(*replies)

    assert world.deliver(*replies).outcome is DeliveryOutcome.UNCONFIRMED
    assert CONNECTION in world.connections.closed


def test_the_replies_behind_one_that_was_not_posted_are_posted_later(world: World) -> None:
    replies = [published(str(one)) for one in range(3)]
    world.connections.results = [PostResult.POSTED, PostResult.BUSY]

    first, second = world.deliver(*replies), world.deliver(*replies[1:])

    assert (first.outcome, first.not_done) == (DeliveryOutcome.BLOCKED, ("m-1", "m-2"))
    assert (second.outcome, second.replies) == (DeliveryOutcome.DONE, 2)


@pytest.mark.parametrize("item", [published(), event_batch(event(1))], ids=["a reply", "an event"])
def test_a_client_that_receives_too_slowly_is_disconnected(world: World, item: OutboxItem) -> None:
    delivered = world.deliver(item, waited=MAXIMUM_WAIT + timedelta(seconds=1))

    assert (delivered.outcome, world.posted(), world.connections.closed) == (DeliveryOutcome.TOO_SLOW, [], {CONNECTION})


@pytest.mark.parametrize("item", [published(), event_batch(event(1))], ids=["a reply", "an event"])
def test_an_item_of_a_killed_call_disconnects_no_client(world: World, item: OutboxItem) -> None:
    world.redelivered_after = MAXIMUM_WAIT

    delivered = world.deliver(item, waited=MAXIMUM_WAIT + timedelta(seconds=1))

    assert (delivered.outcome, len(world.posted()), world.connections.closed) == (DeliveryOutcome.DONE, 1, set())


def test_the_duration_of_a_backfill_disconnects_no_client(world: World) -> None:
    world.log.append(REALM, *(event(number) for number in range(1, 80)))
    world.seconds_per_post = 1
    behind = reply_item(Post(Published(RequestId(1), PublicationId(1))), ItemId("1"))

    delivered = world.deliver(subscribed(), backfill(LastEvents(100)), behind, seconds=100)

    assert (delivered.outcome, delivered.backfilled, world.posted()[-1][0]) == (DeliveryOutcome.DONE, 79, 17)


@pytest.mark.parametrize(
    ("result", "end", "not_done"),
    [
        (PostResult.BUSY, DeliveryOutcome.BLOCKED, ("m-b", "m-c")),
        (PostResult.UNKNOWN, DeliveryOutcome.BLOCKED, ("m-b", "m-c")),
        (PostResult.GONE, DeliveryOutcome.GONE, ()),
        (PostResult.TOO_LARGE, DeliveryOutcome.DONE, ()),
    ],
)
def test_each_failed_post_has_its_outcome(world: World, result, end, not_done) -> None:
    world.connections.results = [PostResult.POSTED, result]

    delivered = world.deliver(event_batch(event(1), event(2), event(3)), event_batch(event(4), item="c"))

    assert (delivered.outcome, delivered.not_done) == (end, not_done)
    if not_done:
        world.deliver(event_batch(event(1), event(2), event(3)), event_batch(event(4), item="c"))
        assert world.numbers() == [1, 2, 3, 4]


def test_live_events_cost_no_write(world: World) -> None:
    world.deliver(event_batch(*map(event, range(1, 9))))

    assert world.saved == []


def test_totals_are_saved_with_other_changes_or_once_a_minute(world: World) -> None:
    world.deliver(published())
    for _ in range(2):
        world.moment += TOTALS_SAVED_EVERY / 2
        world.deliver(event_batch(event(1)))

    totals = world.outbox.totals
    assert (totals.events, totals.replies, len(world.saved)) == (1, 1, 3)
    assert (totals.longest_ms, totals.noted_at) == (59_999, world.moment)


def test_a_client_with_a_large_backlog_is_disconnected_and_the_check_waits_five_seconds(world: World) -> None:
    world.newest_number = MAXIMUM_BACKLOG + 2
    waited = BACKLOG_CHECKED_AFTER + timedelta(seconds=1)

    assert world.deliver(event_batch(event(1)), waited=BACKLOG_CHECKED_AFTER).outcome is DeliveryOutcome.DONE
    assert world.looks == 0
    assert world.deliver(event_batch(event(2), event(3)), waited=waited).outcome is DeliveryOutcome.DONE
    assert world.looks == 1
    assert world.deliver(event_batch(event(1), item="c"), waited=waited).outcome is DeliveryOutcome.TOO_SLOW


def test_a_redelivered_batch_looks_for_no_backlog_of_a_fast_client(world: World) -> None:
    world.newest_number, world.redelivered_after = MAXIMUM_BACKLOG + 2, timedelta(seconds=30)
    waited = world.redelivered_after + BACKLOG_CHECKED_AFTER

    assert world.deliver(event_batch(event(1)), waited=waited).outcome is DeliveryOutcome.DONE
    assert world.looks == 0


def test_a_backfill_that_runs_out_of_time_continues_where_it_stopped(world: World) -> None:
    world.log.append(REALM, *(event(number) for number in range(1, 11)))
    world.seconds_per_post = 1
    items = subscribed(), backfill(AfterSequence(0)), event_batch(event(10), event(11))

    first = world.deliver(*items, seconds=5)
    second = world.deliver(*items[1:], seconds=3)
    third = world.deliver(*items[1:])

    assert [one.outcome for one in (first, second, third)] == [
        DeliveryOutcome.OUT_OF_TIME,
        DeliveryOutcome.OUT_OF_TIME,
        DeliveryOutcome.DONE,
    ]
    assert (first.not_done, world.numbers()) == (("m-p", "m-b"), list(range(1, 12)))


@pytest.mark.parametrize(
    ("start", "posted", "taken"),
    [
        (LastEvents(2), [8, 10, 11], 3),
        (AfterSequence(7), [8, 10, 11], 3),
        (AfterTopicSequences(NOW, {"open.a": 7}), [8, 10, 11], 3),
        (AfterSequence(10), [11], 1),
        (None, [10, 11], 1),
    ],
    ids=["last", "number", "number of the topic", "newest number", "none"],
)
def test_a_backfill_takes_no_earlier_events_of_a_log_than_it_posts(
    world: World, start: BackfillStart | None, posted: list[int], taken: int
) -> None:
    """Event 9 is for another user, and event 10 arrives before the backfill."""
    others = {9: {"audience": Audience(eligible_authid=frozenset({"bob"}))}}
    world.log.append(REALM, *(event(number, **others.get(number, {})) for number in range(1, 11)))

    world.deliver(subscribed(), event_batch(event(10)), backfill(start), event_batch(event(11), item="c"))

    assert (world.numbers(), world.log.taken) == (posted, taken)


@pytest.mark.parametrize(
    ("method", "waited", "refused"),
    [
        (AuthMethod.ANONYMOUS, MAXIMUM_WAIT, []),
        (AuthMethod.ANONYMOUS, MAXIMUM_WAIT * 2, ["p"]),
        (AuthMethod.TICKET, LONGEST_BUSY, []),
        (AuthMethod.TICKET, LONGEST_BUSY * 2, ["p"]),
    ],
)
def test_past_events_that_cannot_be_read_keep_no_new_ones_from_a_session(
    world: World, method: AuthMethod, waited: timedelta, refused: list[str]
) -> None:
    assert SESSION.identity
    world.session = replace(SESSION, identity=replace(SESSION.identity, method=method))
    world.deliver(subscribed())
    world.log.problem = ReadsBusy("busy")

    assert [*world.deliver(backfill(AfterSequence(0)), waited=waited).refused] == refused


def test_too_many_past_events_end_their_subscription_alone(world: World) -> None:
    """Its live events wait until the session has ended it: none is posted behind a gap."""
    world.log.problem = PastTooLarge("too many")

    result = world.deliver(subscribed(), backfill(AfterSequence(0)), event_batch(event(1)))

    assert (result.outcome, result.not_done) == (DeliveryOutcome.DONE, ())
    assert result.refused == {"p": PastRefused(SUBSCRIPTION, "too many")}
    assert [message[0] for message in world.posted()] == [33]
    assert CONNECTION not in world.connections.closed
    world.deliver(reply_item(Post(Unsubscribed(RequestId(0)), ends=SUBSCRIPTION), ItemId("u")))
    assert world.outbox.pending_backfills == {}


def test_past_events_of_more_topics_than_a_record_has_room_for_end_their_subscription(world: World) -> None:
    world.maximum_topics = SAVED_EVERY
    topics = [RoutingKey(f"open.{number}") for number in range(2 * SAVED_EVERY)]
    events = [replace(event(number), topic=topic, is_retained=True) for number, topic in enumerate(topics, start=1)]
    world.log.append(REALM, *events)

    result = world.deliver(subscribed(), backfill(None, get_retained=True))

    assert (result.outcome, [*result.refused]) == (DeliveryOutcome.DONE, ["p"])
    assert world.outbox.watermarks == {}


def test_any_number_of_retained_events_is_posted_in_pages(world: World) -> None:
    """Live events wait behind them, and the record has no more topics of old ones than a page."""
    world.log.small, world.maximum_topics, before = 50, 120, timedelta(hours=1)
    topics = [RoutingKey(f"open.{number:03}") for number in range(220)]
    kept = [event(number, topic, is_retained=True, at=NOW - before) for number, topic in enumerate(topics, start=1)]
    world.log.append(REALM, *kept, event(500, topics[7]))
    world.deliver(subscribed(), event_batch(event(500, topics[7])))

    outcomes = [world.next_page() for _ in range(5)]

    assert outcomes == [DeliveryOutcome.OUT_OF_TIME] * 4 + [DeliveryOutcome.DONE]
    assert sorted(world.numbers()) == [*range(1, 221), 500]
    assert world.numbers().index(500) > world.numbers().index(8)


def test_a_page_ends_also_behind_retained_events_that_a_wildcard_does_not_match(world: World) -> None:
    """18,500 of others, none of which it matches, ended each subscription to a wildcard without history."""
    world.log.small = 50
    others = [event(number, f"a.{number:03}", is_retained=True) for number in range(1, 121)]
    world.log.append(REALM, *others, event(500, "b.state", is_retained=True))
    wildcard = TopicPattern.parse(".state", MatchPolicy.WILDCARD)

    pages = list[Backfill]()
    while not pages or pages[-1].place is not None:
        with world.log.request("joe") as log:
            reader, after = BackfillReader(log, REALM, LiveSettings(), NOW), pages[-1].place if pages else None
            request = BackfillRequest(ItemId("p"), wildcard, get_retained=True, history=None)
            pages.append(reader.read(request, SESSION.listener, deferred={}, posted={}, after=after))

    assert [[one.event.sequence for one in page.events] for page in pages] == [[], [], [500]]


def test_no_live_event_that_waited_longer_than_the_marks_follows_a_later_retained_one(world: World) -> None:
    world.log.small, an_hour_ago = 1, NOW - timedelta(hours=1)
    earlier, later = (event(number, at=an_hour_ago, is_retained=number == 2) for number in (1, 2))
    others = (event(number, f"open.b{number}", at=an_hour_ago, is_retained=True) for number in (3, 4, 5))
    world.log.append(REALM, earlier, later, *others)
    world.deliver(subscribed(), event_batch(earlier))

    while world.next_page() is not DeliveryOutcome.DONE:
        pass

    assert sorted(world.numbers()) == [1, 2, 3, 4, 5]
    assert [one for one in world.numbers() if one < 3] == [1, 2]


def test_a_page_of_retained_events_that_a_client_receives_slowly_goes_on_where_it_stopped(world: World) -> None:
    world.log.small, world.seconds_per_post = 50, 1
    topics = [RoutingKey(f"open.{number:03}") for number in range(80)]
    events = [event(number, topic, is_retained=True) for number, topic in enumerate(topics, start=1)]
    world.log.append(REALM, *events)
    world.deliver(subscribed())

    outcomes = [world.next_page(seconds=20) for _ in range(5)]

    assert outcomes == [DeliveryOutcome.OUT_OF_TIME] * 4 + [DeliveryOutcome.DONE]
    assert world.numbers() == [*range(1, 81)]
    # A live copy of a new retained event may follow.
    assert world.deliver(event_batch(*events[:3])).skipped == 3


def test_with_history_the_retained_events_are_read_at_once(world: World) -> None:
    world.log.small = 3
    topics = [RoutingKey(f"open.{number}") for number in range(1, 9)]
    world.log.append(REALM, *(event(number, f"open.{number}", is_retained=True) for number in range(1, 9)))
    world.deliver(subscribed())

    world.deliver(backfill(LastEvents(2), get_retained=True))

    assert len(world.numbers()) == len(topics)


def test_a_session_ends_whose_record_has_no_room_for_the_topics_of_events_that_wait(world: World) -> None:
    world.maximum_topics = SAVED_EVERY
    topics = [RoutingKey(f"open.{number}") for number in range(SAVED_EVERY + 1)]
    events = [replace(event(number), topic=topic) for number, topic in enumerate(topics, start=1)]
    world.log.append(REALM, events[0])

    result = world.deliver(subscribed(), event_batch(*events))

    assert (result.outcome, result.not_done) == (DeliveryOutcome.TOO_LARGE, ())
    assert world.posted()[-1] == [6, {"message": "too many topics"}, "wamp.error.payload_size_exceeded"]
    assert CONNECTION in world.connections.closed
    assert world.outbox.pending_backfills == world.outbox.watermarks == {}


def test_a_backfill_waits_while_others_read_many_past_events(world: World) -> None:
    world.log.problem = ReadsBusy("busy")

    result = world.deliver(subscribed(), backfill(AfterSequence(0)), event_batch(event(1)))

    assert (result.outcome, result.not_done) == (DeliveryOutcome.READS_BUSY, ("m-p",))
    assert [one[0] for one in world.log.readers] == [REALM]
    assert list(delivery_events(result, now=NOW))[1:] == []
    assert CONNECTION not in world.connections.closed


def test_what_is_behind_a_request_that_waits_leaves_the_outbox(world: World) -> None:
    events = [event(number) for number in range(1, 4)]
    world.log.append(REALM, *events)
    world.log.problem, request = ReadsBusy("busy"), backfill(None, get_retained=True)
    world.deliver(subscribed())

    waits = world.deliver(request, event_batch(events[0], item="1"), published("r"), event_batch(events[1], item="2"))
    assert (waits.outcome, waits.not_done, waits.replies) == (DeliveryOutcome.READS_BUSY, ("m-p",), 1)
    world.log.problem = None
    world.deliver(request, event_batch(events[2], item="3"))

    assert world.numbers() == [1, 2, 3]


@pytest.mark.parametrize("is_begun_again", [False, True])
def test_a_request_that_waits_ends_with_its_subscription(world: World, *, is_begun_again: bool) -> None:
    """Of one that is begun again, the next request is read and not the one before, also if SQS delivers it again."""
    world.log.append(REALM, *(event(number) for number in range(1, 4)))
    world.log.problem, first = ReadsBusy("busy"), backfill(AfterSequence(0))
    end = reply_item(Post(Unsubscribed(RequestId(2)), ends=SUBSCRIPTION), ItemId("u"))
    again = replace(reply_item(Post(Subscribed(RequestId(3), SUBSCRIPTION)), ItemId("a"), expects_backfill=True))
    second = replace(backfill(AfterSequence(2)), item_id=ItemId("q"))

    items = [end, again, second] if is_begun_again else [end]
    result = world.deliver(subscribed(), first, *items)
    assert result.not_done == (("m-q",) if is_begun_again else ())
    world.log.problem = None
    world.deliver(first, *items[2:])

    assert world.numbers() == ([3] if is_begun_again else [])


def test_an_item_that_cannot_be_posted_stops_what_is_behind_it_and_not_the_request_that_waits(world: World) -> None:
    world.log.problem = ReadsBusy("busy")
    world.deliver(subscribed())
    world.connections.results = [PostResult.BUSY]

    result = world.deliver(backfill(AfterSequence(0)), published("r"), event_batch(event(1)))

    assert (result.outcome, result.not_done) == (DeliveryOutcome.BLOCKED, ("m-p", "m-r", "m-b"))


def test_a_request_with_events_of_more_topics_behind_it_than_it_may_read_does_not_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_DEFERRED", 2)
    world.log.problem = ReadsBusy("busy")
    events = [event(number, f"open.{number}") for number in range(1, 4)]
    world.deliver(subscribed(), backfill(AfterSequence(0)), event_batch(*events))

    assert [*world.deliver(backfill(AfterSequence(0))).refused] == ["p"]


@pytest.mark.parametrize(
    ("count", "size"), [(MAXIMUM_FRAMES + 1, 1), (MAXIMUM_PAGE_BYTES // 100_000 + 2, 100_000)], ids=["posts", "bytes"]
)
def test_a_long_backfill_is_posted_in_pages_each_of_which_is_read_anew(world: World, count: int, size: int) -> None:
    payload = Payload(("x" * size,))
    world.log.append(REALM, *(event(number, payload=payload) for number in range(1, count + 1)))
    items = [backfill(AfterSequence(0)), event_batch(event(count))]

    first = world.deliver(subscribed(), *items)
    second = world.deliver(*items)

    assert (first.outcome, first.not_done) == (DeliveryOutcome.OUT_OF_TIME, ("m-p", "m-b"))
    assert (second.outcome, second.backfilled) == (DeliveryOutcome.DONE, count - first.backfilled)
    assert world.numbers() == [*range(1, count + 1)]
    assert (world.log.taken - count, world.log.posts) == (second.backfilled + 1, count)


def test_no_backfill_begins_after_the_time_however_little_the_others_post(world: World) -> None:
    """Each takes two seconds to read, and nothing is posted but the five SUBSCRIBED."""
    world.on_read = lambda: world.__setattr__("moment", world.moment + timedelta(seconds=2))
    items: list[OutboxItem] = []
    for number in range(5):
        subscribed_again = replace(subscribed(), item_id=ItemId(f"s{number}"))
        items += [subscribed_again, replace(backfill(AfterSequence(0)), item_id=ItemId(f"p{number}"))]

    left, invocations = items, 0
    while left:
        result = world.deliver(*left, seconds=5)
        left = left[len(left) - len(result.not_done) :]
        invocations += 1

    assert invocations == 3
    assert [message[0] for message in world.posted()] == [33] * 5


def test_the_progress_of_a_backfill_is_saved_every_100_events(world: World) -> None:
    world.log.append(REALM, *(event(number) for number in range(1, 2 * SAVED_EVERY + 2)))

    world.deliver(subscribed(), backfill(AfterSequence(0)))

    mark = mark_of(RoutingKey("open.a"))
    marks = [one.watermarks[SUBSCRIPTION].numbers[mark] for one in world.saved if one.watermarks]
    assert marks == [SAVED_EVERY, 2 * SAVED_EVERY, 2 * SAVED_EVERY + 1]


def test_the_history_of_a_large_batch_names_its_first_publications_only(world: World) -> None:
    world.log.append(REALM, *(event(number) for number in range(1, MAXIMUM_IDS + 2)))

    (posted,) = delivery_events(world.deliver(subscribed(), backfill(AfterSequence(0))), now=NOW)

    assert posted.labels["past"] == str(MAXIMUM_IDS + 1)
    assert posted.labels["publications"] == ",".join(str(number) for number in range(1, MAXIMUM_IDS + 1))


def test_a_completed_backfill_is_not_repeated(world: World) -> None:
    world.log.append(REALM, event(1))
    world.deliver(subscribed(), backfill(LastEvents(5)))

    world.deliver(subscribed(), backfill(LastEvents(5)))

    assert world.numbers() == [1]


def test_events_deferred_to_a_retained_only_backfill_are_posted(
    world: World,
) -> None:
    """This includes events for listed session ids, which are not history, but none for other sessions."""
    ours, others = (Audience(eligible=frozenset({session})) for session in (SESSION.session, SessionId(1)))
    events = event(1, is_retained=True), event(2), event(3, audience=ours), event(4, audience=others), event(5)
    world.log.append(REALM, *events)
    world.deliver(subscribed(), event_batch(event(2)))

    world.deliver(backfill(None, get_retained=True), event_batch(event(3), event(5)), event_batch(event(6), item="c"))

    assert world.numbers() == [1, 2, 3, 5, 6]


def test_a_pattern_is_backfilled_in_the_order_of_publication(world: World) -> None:
    """A topic keeps its own order even if its times are out of order."""
    at = [NOW + timedelta(seconds=second) for second in range(5)]
    world.log.append(REALM, event(1, at=at[0]), event(2, at=at[3]), event(3, at=at[2]))
    world.log.append(REALM, event(1, "open.b", at=at[1]), event(2, "open.b", at=at[4]))

    world.deliver(subscribed(), backfill(LastEvents(9)))

    details = [(message[3]["topic"][-1], message[3]["_seq"]) for message in world.posted()[1:]]
    assert details == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)]


def test_simultaneous_events_are_ordered_by_their_sqs_sequence(world: World) -> None:
    world.log.append(REALM, event(1, at=NOW, sqs_sequence=7), event(2, at=NOW, sqs_sequence=9))
    world.log.append(REALM, event(1, "open.b", at=NOW, sqs_sequence=8))

    world.deliver(subscribed(), backfill(LastEvents(9)))

    assert [message[3]["topic"][-1] for message in world.posted()[1:]] == ["a", "b", "a"]


def test_a_backfill_of_old_events_sets_no_watermark(world: World) -> None:
    world.log.append(REALM, event(1, at=NOW - timedelta(hours=1)), event(1, "open.b"))

    world.deliver(subscribed(), backfill(AfterSequence(5)))

    assert world.outbox.watermarks[SUBSCRIPTION].numbers == {mark_of(RoutingKey("open.b")): 1}


def test_a_right_revoked_during_a_backfill_stops_it(world: World) -> None:
    world.log.append(REALM, event(1))
    reads = iter([ADMIN.rights, WITHOUT_RIGHTS.rights])
    world.on_read = lambda: setattr(world, "rights", next(reads))

    delivered = world.deliver(subscribed(), backfill(LastEvents(5)))

    assert (delivered.backfilled, world.numbers()) == (0, [])


@pytest.mark.parametrize(
    "changed",
    [{"session": None}, {"session": replace(SESSION, realm=None)}, {"live": None}, {"outbox": KNOWN}],
    ids=["no session", "not joined", "no realm any more", "not awaited"],
)
def test_a_backfill_without_a_session_is_skipped(changed: dict[str, Any]) -> None:
    world = World(outbox=replace(KNOWN, pending_backfills={SUBSCRIPTION: {}}))
    for name, value in changed.items():
        setattr(world, name, value)
    world.log.append(REALM, event(1))

    assert world.deliver(backfill(LastEvents(5))).outcome is DeliveryOutcome.DONE
    assert world.posted() == []


def test_a_close_item_closes_the_connection_and_later_items_are_not_posted(world: World) -> None:
    delivered = world.deliver(published(), CloseRequest(ItemId("2")), event_batch(event(1)))

    assert (delivered.outcome, len(world.posted()), world.connections.closed) == (
        DeliveryOutcome.CLOSED,
        1,
        {CONNECTION},
    )


def test_history_has_posted_counts_and_the_reason_of_failures(world: World) -> None:
    world.connections.results = [PostResult.POSTED, PostResult.BUSY]
    other = SubscriptionEvent(TopicPattern.parse("open.x"), event(9))
    delivered = world.deliver(
        replace(event_batch(event(1), event(2)), events=(other, *event_batch(event(1), event(2)).events))
    )
    world.moment += timedelta(seconds=1)

    posted, failed = delivery_events(delivered, now=world.moment)

    assert (posted.kind, posted.outcome, posted.source) == ("delivered", "posted", REALM)
    facts = {"session": str(SESSION.session), "user": "root", "events": "1", "skipped": "1"}
    assert posted.labels == {**facts, "publications": "1"}
    assert failed.labels == facts
    assert (failed.outcome, failed.reason) == (
        "failed",
        "the connection takes nothing now",
    )


def test_history_has_no_event_for_replies_alone_and_no_user_without_a_session(world: World) -> None:
    assert list(delivery_events(world.deliver(published()), now=NOW)) == []

    world.session = None
    world.connections.closed = {CONNECTION}
    (dropped,) = delivery_events(world.deliver(published("2")), now=NOW)
    assert (dropped.outcome, dropped.source, dropped.labels, dropped.latency_ms) == ("dropped", None, {}, None)


def test_the_event_of_a_dead_letter_has_its_message_id_and_not_its_body() -> None:
    recorded = dead_letter(MessageId("m-1"), holder="an outbox", at=NOW)

    assert (recorded.capability, recorded.kind, recorded.outcome, recorded.message_id) == (
        "live",
        "dead_letter",
        "dead",
        "m-1",
    )
    assert (recorded.event_id, recorded.reason) == ("dead_letter:m-1", "nothing that an outbox has")


@pytest.mark.parametrize(
    ("session", "user", "seconds"), [(SESSION, "root", 90), (None, None, None)], ids=["known", "gone"]
)
def test_the_closing_summary_has_the_connections_totals(
    session: Session | None, user: str | None, seconds: object
) -> None:
    world = World(session=session)

    words = closing_summary(world.deliver(published()), now=NOW + timedelta(seconds=90))

    assert (words["connection"], words["user"], words["seconds"], words["replies"]) == (CONNECTION, user, seconds, 1)


def a_while_ago(world: World, **copied: Any) -> World:
    """Let the writer know the session as of the last reply, and the rights of a second ago."""
    world.is_current, world.copied = False, replace(SESSION, **copied)
    return world


@pytest.mark.parametrize("missing", ["the right", "the subscription"])
def test_what_an_older_read_denies_is_read_again_once_in_a_batch(world: World, missing: str) -> None:
    reads: list[bool] = []
    if missing == "the right":
        a_while_ago(world).known_rights = WITHOUT_RIGHTS.rights
    else:
        a_while_ago(world, subscriptions={})
    world.on_read = lambda: reads.append(True)

    world.deliver(event_batch(event(1), event(2)))

    assert (world.numbers(), reads) == ([1, 2], [True])


def test_events_that_are_denied_by_the_current_state_are_not_posted(world: World) -> None:
    a_while_ago(world, subscriptions={}).session = replace(SESSION, subscriptions={})

    delivered = world.deliver(event_batch(event(1), event(2)))

    assert (world.numbers(), delivered.skipped) == ([], 2)


def test_no_event_is_posted_after_a_posted_goodbye(world: World) -> None:
    """The function `session` has stored the end of the session before it sends GOODBYE."""
    a_while_ago(world).session = replace(SESSION, state=SessionState.CLOSING, subscriptions={})

    world.deliver(event_batch(event(1)))
    world.deliver(reply_item(Post(Goodbye({}, "wamp.close.killed")), ItemId("g")))
    world.deliver(event_batch(event(2), item="c"))

    assert [message[0] for message in world.posted()] == [36, 6]


def test_no_event_is_posted_after_unsubscribed_whatever_is_known_of_the_session(world: World) -> None:
    a_while_ago(world)
    unsubscribed = reply_item(Post(Unsubscribed(RequestId(2)), ends=SUBSCRIPTION), ItemId("u"))

    world.deliver(event_batch(event(1)), unsubscribed, event_batch(event(2), item="c"))
    world.copied = SESSION
    world.deliver(event_batch(event(3), item="d"))

    assert [message[0] for message in world.posted()] == [36, 35]


def test_a_backfill_reads_the_current_settings_first(world: World) -> None:
    a_while_ago(world)
    world.log.append(REALM, event(1), event(2))

    world.deliver(subscribed(), backfill(LastEvents(1)))

    assert world.numbers() == [2]


def test_no_event_is_posted_after_the_end_of_the_token(world: World) -> None:
    token = TokenIdentity("", Role.SUBSCRIBER, (), NOW, skew_seconds=60)
    world.session = replace(SESSION, token=token)

    world.moment = NOW + timedelta(seconds=59)
    world.deliver(event_batch(event(1)))
    world.moment = NOW + timedelta(seconds=60)
    result = world.deliver(event_batch(event(2), item="c"))

    assert world.numbers() == [1]
    assert result.skipped == 1


def test_a_token_that_was_renewed_since_the_copy_of_the_session_is_not_over(world: World) -> None:
    token = TokenIdentity("", Role.SUBSCRIBER, (), NOW)
    a_while_ago(world).session = replace(SESSION, token=replace(token, expires_at=NOW + timedelta(hours=1)))
    world.copied = replace(SESSION, token=token)

    world.deliver(event_batch(event(1)))

    assert world.numbers() == [1]


def test_a_backfill_ends_with_the_token(world: World) -> None:
    world.outbox = replace(KNOWN, pending_backfills={SUBSCRIPTION: {}})
    world.session = replace(SESSION, token=TokenIdentity("", Role.SUBSCRIBER, (), NOW + timedelta(seconds=2)))
    world.log.append(REALM, event(1), event(2), event(3))
    world.seconds_per_post = 1

    world.deliver(backfill(LastEvents(3)))

    assert world.numbers() == [1, 2]


def test_snapshots_are_read_before_the_deliveries(world: World) -> None:
    reads: list[bool] = []
    world.on_read = lambda: reads.append(True)
    writer = OutboxWriter(world, world.log, world, lambda: world.moment)
    batch = event_batch(event(1))

    snapshots = writer.read({CONNECTION: [batch]})
    incoming = [ReceivedItem(MessageId("m"), batch, world.moment)]
    later = world.moment + timedelta(minutes=1)
    writer.deliver(CONNECTION, incoming, until=later, snapshot=snapshots[CONNECTION])

    assert (world.numbers(), reads) == ([1], [True])


BATCHED = replace(SESSION, is_batched=True)


def frames(world: World) -> list[list[Any]]:
    """Return the messages of each WebSocket message that a client of batches received."""
    return [list(map(json.loads, messages_of(text))) for text in world.connections.posted[CONNECTION]]


def test_a_client_of_batches_receives_the_events_of_an_item_at_once(world: World) -> None:
    world.session = BATCHED

    result = world.deliver(event_batch(event(1), event(2), event(3)))

    (frame,) = frames(world)
    assert [message[3]["_seq"] for message in frame] == [1, 2, 3]
    assert (result.events, len(result.lags), list(result.publications)) == (3, 3, [1, 2, 3])
    assert world.connections.posted[CONNECTION][0].endswith("\x1e")
    assert result.size == len(world.connections.posted[CONNECTION][0])


def test_events_that_may_not_be_posted_are_not_in_a_batch(world: World) -> None:
    world.session, world.rights = BATCHED, WITHOUT_RIGHTS.rights

    result = world.deliver(event_batch(event(1), event(2)))

    assert (frames(world), result.skipped) == ([], 2)


def test_a_batch_that_was_not_posted_is_posted_again_as_a_whole(world: World) -> None:
    world.session = BATCHED
    large = [event(number, payload=Payload(("x" * 15_000,))) for number in range(1, 5)]
    world.connections.results = [PostResult.POSTED, PostResult.BUSY]

    first = world.deliver(event_batch(*large))
    second = world.deliver(event_batch(*large))

    assert (first.outcome, second.outcome) == (DeliveryOutcome.BLOCKED, DeliveryOutcome.DONE)
    assert [[message[3]["_seq"] for message in frame] for frame in frames(world)] == [[1, 2], [3, 4]]
    assert (first.events, second.events) == (2, 2)


def test_events_that_come_after_the_time_is_over_are_not_posted(world: World) -> None:
    world.session, world.seconds_per_post = BATCHED, 2
    large = [event(number, payload=Payload(("x" * 30_000,))) for number in range(1, 4)]

    result = world.deliver(event_batch(*large), seconds=3)

    assert (result.outcome, result.events) == (DeliveryOutcome.OUT_OF_TIME, 2)


@dataclass
class SlowRights:
    """Rights whose check of a topic takes a second."""

    world: World
    topics: frozenset[str]
    checks: int = 0

    def may_receive(self, topic: RoutingKey) -> bool:
        self.checks += 1
        self.world.moment += timedelta(seconds=1)
        return topic in self.topics


def test_events_that_may_not_be_posted_take_no_more_than_the_time_of_the_function(world: World) -> None:
    rights = SlowRights(world, frozenset({"open.8"}))
    world.session, world.rights = BATCHED, rights
    batch, outcomes, checks = event_batch(*(event(number, f"open.{number}") for number in range(10))), [], []

    while DeliveryOutcome.DONE not in outcomes:
        before = rights.checks
        outcomes.append(world.deliver(batch, seconds=3).outcome)
        checks.append(rights.checks - before)

    assert (world.numbers_in_frames(), max(checks)) == ([8], 3)
    assert outcomes == [*[DeliveryOutcome.OUT_OF_TIME] * 3, DeliveryOutcome.DONE]


def test_past_events_that_may_not_be_posted_take_no_more_than_the_time_of_the_function(world: World) -> None:
    world.outbox = replace(KNOWN, pending_backfills={SUBSCRIPTION: {}})
    world.log.append(REALM, *(event(number) for number in range(1, 11)))
    rights = world.rights = SlowRights(world, frozenset())

    result = world.deliver(backfill(LastEvents(10)), seconds=3)

    assert (result.outcome, rights.checks, world.posted()) == (DeliveryOutcome.OUT_OF_TIME, 3, [])


def test_a_client_of_batches_receives_a_backfill_in_few_messages(world: World) -> None:
    world.session, world.outbox = BATCHED, replace(KNOWN, pending_backfills={SUBSCRIPTION: {}})
    world.log.append(REALM, *(event(number) for number in range(1, 251)))

    result = world.deliver(backfill(LastEvents(250)))

    assert [len(frame) for frame in frames(world)] == [100, 100, 50]
    assert world.numbers_in_frames() == list(range(1, 251))
    assert result.backfilled == 250
    assert len(world.saved) == 3  # twice in between, since a crash repeats what was not saved


def test_a_backfill_of_large_events_is_divided(world: World) -> None:
    world.session, world.outbox = BATCHED, replace(KNOWN, pending_backfills={SUBSCRIPTION: {}})
    world.log.append(REALM, *(event(number, payload=Payload(("x" * 15_000,))) for number in range(1, 4)))

    world.deliver(backfill(LastEvents(3)))

    assert [len(frame) for frame in frames(world)] == [2, 1]
