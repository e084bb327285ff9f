"""A client's position: duplicates, gaps, and the backfill requested after a reconnect."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent, event_for
from signalbox.live.log.selection import backfill_page
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.codec import MAXIMUM_FRAME_BYTES, serialize, size_bytes
from signalbox.live.wamp.messages import Dictionary, Event, Payload, PublicationId, RequestId, SessionId, Subscribe
from signalbox.live.wamp.options import AfterSequence, AfterTime, BackfillStart, LastEvents, SubscribeOptions
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

START = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
LOGS = TopicPattern.parse("logs.", MatchPolicy.PREFIX)
ONE = TopicPattern.parse("logs.a")
ME = Listener(SessionId(7), "alice", "subscriber")


def event(sequence: int | None, topic: str = "logs.a", *, publication: int | None = None, **details: object) -> Event:
    fields: Dictionary = {"topic": topic, "_at": "2026-11-21T20:00:00Z", **details}
    numbered = fields if sequence is None else {**fields, "_seq": sequence}
    return Event(LOGS.subscription_id, PublicationId(publication or sequence or 1), numbered)


def given_to(cursor: PatternCursor, *events: Event) -> list[int]:
    return [received.publication for one in events if (received := cursor.received(one))]


def test_an_event_is_returned_with_its_details() -> None:
    omitted = event(3, _headers={"from": "here"}, _omitted_bytes=200_000)

    received = PatternCursor(LOGS).received(replace(omitted, payload=Payload((1,))))

    assert received == ReceivedEvent(
        RoutingKey("logs.a"),
        PublicationId(3),
        Payload((1,)),
        sequence=3,
        at=START,
        omitted_bytes=200_000,
        headers={"from": "here"},
    )


@pytest.mark.parametrize("character", ['"', "\\", "\x01", "ä"])
def test_the_topics_of_a_request_fit_into_a_frame_whatever_their_characters(character: str) -> None:
    """JSON writes a quotation mark with two bytes, and a control character with six."""
    cursor = PatternCursor(LOGS)
    given_to(cursor, *(event(1, f"logs.{number:03}{character * 120}", publication=number) for number in range(1, 300)))
    cursor.caught_up(START)

    text = serialize(Subscribe(RequestId(1), cursor.options, "logs."))

    assert 20_000 < size_bytes(text) <= MAXIMUM_FRAME_BYTES


def test_the_topic_of_an_exact_subscription_is_its_pattern() -> None:
    received = PatternCursor(ONE).received(Event(ONE.subscription_id, PublicationId(3), {}))

    assert received == ReceivedEvent(RoutingKey("logs.a"), PublicationId(3))


def test_an_event_that_was_published_again_with_another_number_is_returned_once() -> None:
    events = [event(number, publication=publication) for number, publication in ((1, 7), (2, 8), (3, 7), (4, 9))]

    assert given_to(PatternCursor(LOGS), *events) == [7, 8, 9]


# --- retained events


# --- reconnecting


@pytest.mark.parametrize(
    ("start", "history"), [(None, None), (LastEvents(3), {"last": 3}), (AfterSequence(4), {"after": 4})], ids=str
)
def test_the_first_subscribe_requests_the_given_backfill(start: BackfillStart | None, history: object) -> None:
    assert PatternCursor(ONE, start).options.get("_history") == history


def test_without_the_routers_time_the_first_backfill_is_requested_again() -> None:
    cursor = PatternCursor(LOGS, AfterTime(START))
    cursor.caught_up(None)

    assert cursor.options["_history"] == {"after": START.isoformat()}


# --- the law


@dataclass(slots=True)
class Realm:
    """A log, and a connection with backfill and live events in transit until it is lost."""

    log: list[LoggedEvent] = field(default_factory=list)
    on_its_way: list[LoggedEvent] | None = None

    def publish(self, topic: str, delay: int) -> None:
        """Publish an event that is `delay` seconds older than the log's end, since others overtook it."""
        number = sum(one.topic == topic for one in self.log) + 1
        at = START + timedelta(seconds=len(self.log) - delay)
        logged = LoggedEvent(PublicationId(len(self.log) + 1), RoutingKey(topic), at, sequence=number)
        self.log.append(logged)
        if self.on_its_way is not None:
            self.on_its_way.append(logged)

    def subscribe(self, cursor: PatternCursor) -> None:
        requested = SubscribeOptions.parse(cursor.options).history
        self.on_its_way = [] if requested is None else list(backfill_page(self.log, requested, ME).events)

    def deliver(self, cursor: PatternCursor, count: int) -> list[int]:
        due = (self.on_its_way or [])[:count]
        self.on_its_way = (self.on_its_way or [])[count:]
        return given_to(cursor, *(event_for(cursor.pattern, logged) for logged in due))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(["logs.a", "logs.b", "logs.c"]), st.integers(0, 5)),
        st.tuples(st.just("deliver"), st.just(""), st.integers(0, 3)),
        st.tuples(st.just("cut"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


@given(steps)
def test_each_event_is_returned_once_and_in_order_across_lost_connections(todo: list[tuple[str, str, int]]) -> None:
    realm, cursor, seen = Realm(), PatternCursor(LOGS), list[int]()
    realm.subscribe(cursor)
    cursor.caught_up(START - timedelta(seconds=9))

    for what, topic, number in [*todo, ("cut", "", 0), ("deliver", "", 99)]:
        if what == "publish":
            realm.publish(topic, number)
        elif what == "deliver":
            seen += realm.deliver(cursor, number)
        else:
            realm.subscribe(cursor)

    for topic in ("logs.a", "logs.b", "logs.c"):
        published = [logged.publication for logged in realm.log if logged.topic == topic]
        assert [publication for publication in seen if publication in published] == published
