"""A client's position: duplicates, gaps, and the backfill requested after a reconnect."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.clients.live.cursor import GRACE, PatternCursor, ReceivedEvent
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


def test_the_topic_of_an_exact_subscription_is_its_pattern() -> None:
    received = PatternCursor(ONE).received(Event(ONE.subscription_id, PublicationId(3), {}))

    assert received == ReceivedEvent(RoutingKey("logs.a"), PublicationId(3))


def test_an_event_is_returned_once() -> None:
    assert given_to(PatternCursor(LOGS), event(1), event(2), event(1), event(2), event(3)) == [1, 2, 3]


def test_each_topic_has_its_own_numbers() -> None:
    other = event(1, "logs.b", publication=9)

    assert given_to(PatternCursor(LOGS), event(2), other, event(1)) == [2, 9]


def test_an_event_without_a_number_is_de_duplicated_by_its_publication() -> None:
    assert given_to(PatternCursor(LOGS), event(None, publication=8), event(None), event(None, publication=8)) == [8, 1]


def test_events_missing_before_an_event_are_counted() -> None:
    cursor = PatternCursor(LOGS)

    skipped = [received.skipped for one in (event(4), event(5), event(9)) if (received := cursor.received(one))]

    assert skipped == [0, 0, 3]


# --- retained events


def test_the_retained_event_precedes_the_backfill_and_is_returned_once() -> None:
    latest = event(3, retained=True)

    assert given_to(PatternCursor(LOGS), latest, event(1), event(2), event(3), latest, event(4), latest) == [3, 1, 2, 4]


def test_a_retained_event_older_than_the_position_is_ignored() -> None:
    assert given_to(PatternCursor(LOGS), event(5), event(3, retained=True)) == [5]


# --- reconnecting


@pytest.mark.parametrize(
    ("wish", "history"), [(None, None), (LastEvents(3), {"last": 3}), (AfterSequence(4), {"after": 4})], ids=str
)
def test_the_first_subscribe_requests_the_given_backfill(wish: BackfillStart | None, history: object) -> None:
    assert PatternCursor(ONE, wish).options.get("_history") == history


def test_every_subscribe_requests_the_retained_event() -> None:
    assert PatternCursor(LOGS, get_retained=True).options == {"match": "prefix", "get_retained": True}


def test_a_topic_continues_after_its_last_number() -> None:
    cursor = PatternCursor(ONE, LastEvents(3))
    given_to(cursor, event(7), event(8))

    assert cursor.options["_history"] == {"after": 8}


def test_an_incomplete_backfill_is_requested_again() -> None:
    cursor = PatternCursor(LOGS, LastEvents(3))
    given_to(cursor, event(7))

    assert cursor.options["_history"] == {"last": 3}


def test_a_pattern_continues_after_each_topics_number_and_since_the_session_began() -> None:
    cursor = PatternCursor(LOGS, LastEvents(3))
    given_to(cursor, event(7), event(2, "logs.b"))

    cursor.caught_up(START)
    cursor.caught_up(START + timedelta(hours=1))

    expected = {"since": "2026-11-21T20:00:00+00:00", "topics": {"logs.b": 2, "logs.a": 7}}
    assert cursor.options["_history"] == {"after": expected}


def test_without_the_routers_time_the_first_backfill_is_requested_again() -> None:
    cursor = PatternCursor(LOGS, AfterTime(START))
    cursor.caught_up(None)

    assert cursor.options["_history"] == {"after": START.isoformat()}


def test_if_not_all_topics_fit_the_most_recent_are_listed_and_the_others_start_15_minutes_earlier() -> None:
    cursor = PatternCursor(LOGS)
    cursor.caught_up(START - timedelta(days=1))
    topics = [f"logs.{number:0200}" for number in range(200)]
    given_to(cursor, *(event(1, topic) for topic in [*topics, topics[0]]), event(2, topics[0]))

    options = SubscribeOptions.parse(cursor.options)

    named = getattr(options.history, "numbers", {})
    assert 100 < len(named) < 200
    assert (named[topics[0]], named[topics[-1]], topics[1] in named) == (2, 1, False)
    assert getattr(options.history, "since", None) == START - GRACE
    assert size_bytes(serialize(Subscribe(RequestId(1), cursor.options, LOGS.uri))) < MAXIMUM_FRAME_BYTES


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
        wish = SubscribeOptions.parse(cursor.options).history
        self.on_its_way = [] if wish is None else list(backfill_page(self.log, wish, ME).events)

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
