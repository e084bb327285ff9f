"""Selection of logged events for history requests and backfills."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.records import Retention
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES, EventTexts, LoggedEvent, event_for, size_limited
from signalbox.live.log.get_events import get_events_result
from signalbox.live.log.history_request import HistoryRequest, InvalidArgument
from signalbox.live.log.retention import retention_of
from signalbox.live.log.selection import HistoryPage, backfill_page, history_page, is_logged, latest_retained
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, serialize, size_bytes
from signalbox.live.wamp.messages import Event, Payload, PublicationId, RequestId, Result, SessionId, SubscriptionId
from signalbox.live.wamp.options import (
    AfterPublication,
    AfterSequence,
    AfterTime,
    AfterTopicSequences,
    BackfillStart,
    LastEvents,
)
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

START = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
ME = Listener(SessionId(7), "alice", "subscriber")
SUBSCRIPTION = SubscriptionId(1)
LOGS = TopicPattern.parse("logs.", MatchPolicy.PREFIX)
FOR_BOB = Audience(eligible_authid=frozenset({"bob"}))
NOT_FOR_SOURCES = Audience(exclude_authrole=frozenset({"source"}))
BY_ME = Audience(excluded_publisher=ME.session)


def logged(
    number: int, topic: str = "logs.a", *, second: int | None = None, audience: Audience = UNRESTRICTED
) -> LoggedEvent:
    at = START + timedelta(seconds=number if second is None else second)
    return LoggedEvent(PublicationId(number), RoutingKey(topic), at, sequence=number, audience=audience)


def numbers(page: HistoryPage) -> list[int]:
    return [event.publication for event in page.events]


FIVE = [logged(number) for number in range(1, 6)]

# --- get_events

seconds = st.integers(0, 6)
moments = st.none() | seconds.map(lambda second: START + timedelta(seconds=second))
publications = st.none() | st.integers(1, 9).map(PublicationId)
audiences = st.sampled_from([UNRESTRICTED, UNRESTRICTED, FOR_BOB, NOT_FOR_SOURCES, BY_ME])
# Clocks may go back or stand still, so times are unordered.
logs = st.lists(st.tuples(seconds, st.sampled_from(["logs.a", "logs.b"]), audiences), max_size=8).map(
    lambda found: [
        logged(number, topic, second=second, audience=audience)
        for number, (second, topic, audience) in enumerate(found, start=1)
    ]
)
queries = st.builds(
    HistoryRequest,
    st.just(SUBSCRIPTION),
    limit=st.integers(1, 5),
    is_reversed=st.booleans(),
    from_time=moments,
    after_time=moments,
    before_time=moments,
    until_time=moments,
    topic=st.sampled_from([None, "logs.a"]),
    from_publication=publications,
    after_publication=publications,
    before_publication=publications,
    until_publication=publications,
)


def is_wanted(event: LoggedEvent, query: HistoryRequest, events: list[LoggedEvent]) -> bool:
    """The definition. Publications are numbered in order; one that is not in the log counts as the oldest."""

    def place(publication: PublicationId) -> int:
        return int(publication) if publication in [one.publication for one in events] else 0

    conditions = [
        query.from_time is None or event.at >= query.from_time,
        query.after_time is None or event.at > query.after_time,
        query.before_time is None or event.at < query.before_time,
        query.until_time is None or event.at <= query.until_time,
        query.topic is None or event.topic == query.topic,
        query.from_publication is None or event.publication >= place(query.from_publication),
        query.after_publication is None or event.publication > place(query.after_publication),
        query.before_publication is None or event.publication < place(query.before_publication),
        query.until_publication is None or event.publication <= place(query.until_publication),
        event.audience != FOR_BOB,
    ]
    return all(conditions)


@given(logs, queries)
def test_a_history_request_returns_the_events_within_all_bounds(
    events: list[LoggedEvent], query: HistoryRequest
) -> None:
    wanted = [event.publication for event in events if is_wanted(event, query, events)]
    if query.is_reversed:
        wanted.reverse()

    page = history_page(events, query, ME)

    assert numbers(page) == wanted[: query.limit]
    assert page.has_more is (len(wanted) > query.limit)


@given(logs, st.integers(1, 3), st.booleans())
def test_paging_returns_each_event_once(events: list[LoggedEvent], limit: int, is_reversed: bool) -> None:  # noqa: FBT001
    """«Pass the publication id of the last event returned in the previous page.»"""
    query, found = HistoryRequest(SUBSCRIPTION, limit=limit, is_reversed=is_reversed), list[int]()
    for _ in range(len(events) + 1):
        page = history_page(events, query, ME)
        found += numbers(page)
        if not page.has_more:
            break
        seen = page.events[-1].publication
        query = replace(query, before_publication=seen) if is_reversed else replace(query, after_publication=seen)

    shown = [event.publication for event in events if event.audience != FOR_BOB]
    assert found == (shown[::-1] if is_reversed else shown)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (HistoryRequest(SUBSCRIPTION), [1, 2, 3, 4, 5]),
        (HistoryRequest(SUBSCRIPTION, limit=2), [1, 2]),
        (HistoryRequest(SUBSCRIPTION, limit=2, is_reversed=True), [5, 4]),
        (HistoryRequest(SUBSCRIPTION, from_publication=PublicationId(4)), [4, 5]),
        (HistoryRequest(SUBSCRIPTION, after_publication=PublicationId(4)), [5]),
        (HistoryRequest(SUBSCRIPTION, before_publication=PublicationId(2)), [1]),
        (HistoryRequest(SUBSCRIPTION, until_publication=PublicationId(2)), [1, 2]),
        (
            HistoryRequest(SUBSCRIPTION, after_publication=PublicationId(1), until_time=START + timedelta(seconds=3)),
            [2, 3],
        ),
    ],
)
def test_each_bound_limits_the_events(query: HistoryRequest, found: list[int]) -> None:
    assert history_page(FIVE, query, ME) == HistoryPage(
        tuple(FIVE[number - 1] for number in found), has_more=query.limit == 2
    )


def test_a_lower_bound_that_has_expired_returns_everything_as_incomplete() -> None:
    page = history_page(FIVE, HistoryRequest(SUBSCRIPTION, after_publication=PublicationId(99)), ME)

    assert numbers(page) == [1, 2, 3, 4, 5]
    assert not page.is_complete


def test_an_upper_bound_that_has_expired_returns_nothing_as_incomplete() -> None:
    page = history_page(FIVE, HistoryRequest(SUBSCRIPTION, is_reversed=True, before_publication=PublicationId(99)), ME)

    assert numbers(page) == []
    assert not page.is_complete


def test_history_includes_the_users_own_events() -> None:
    assert numbers(history_page([logged(1, audience=BY_ME)], HistoryRequest(SUBSCRIPTION), ME)) == [1]


def test_an_event_for_listed_session_ids_is_not_logged() -> None:
    """Advanced profile, «Event History», security aspects."""
    assert not is_logged(logged(1, audience=Audience(eligible=frozenset({ME.session}))))
    assert not is_logged(logged(1, audience=Audience(exclude=frozenset({ME.session}))))
    assert all(is_logged(logged(1, audience=audience)) for audience in (UNRESTRICTED, FOR_BOB, BY_ME))


# --- arguments of get_events


def test_every_bound_of_get_events_is_parsed() -> None:
    payload = Payload(
        (1293722, "ignored"),
        {
            "limit": 10,
            "reverse": True,
            "from_time": "2026-11-21T20:00:00Z",
            "after_time": "2026-11-21T20:00:00.000Z",
            "before_time": "2026-11-21T21:00:00+01:00",
            "until_time": "2026-11-21T20:00:00Z",
            "topic": "logs.a",
            "from_publication": 1,
            "after_publication": 2,
            "before_publication": 3,
            "until_publication": 4,
            "unknown": 5,
        },
    )

    assert HistoryRequest.parse(payload) == HistoryRequest(
        SubscriptionId(1293722),
        limit=10,
        is_reversed=True,
        from_time=START,
        after_time=START,
        before_time=START,
        until_time=START,
        topic="logs.a",
        from_publication=PublicationId(1),
        after_publication=PublicationId(2),
        before_publication=PublicationId(3),
        until_publication=PublicationId(4),
    )


@pytest.mark.parametrize(("limit", "effective"), [(None, 1000), (1000, 1000), (10**9, 1000), (1, 1)])
def test_the_limit_of_get_events_has_a_maximum(limit: int | None, effective: int) -> None:
    assert HistoryRequest.parse(Payload((1,), {"limit": limit})).limit == effective


@pytest.mark.parametrize(
    ("payload", "problems"),
    [
        (Payload(), ["arguments[0]: expected a subscription id, not None"]),
        (Payload((True,)), ["arguments[0]: expected a subscription id, not True"]),
        (Payload((0,)), ["arguments[0]: expected a subscription id, not 0"]),
        (Payload((1,), {"topic": "a" * 256}), ["topic: has 256 bytes of UTF-8; at most 255 are allowed"]),
        (
            Payload((1,), {"limit": 0, "reverse": 1, "from_time": "now", "topic": 3, "until_publication": "x"}),
            [
                "limit: expected an integer of at least 1, not 0",
                "reverse: expected true or false, not 1",
                "from_time: expected an RFC 3339 time with a time zone, not 'now'",
                "topic: expected a text, not 3",
                "until_publication: expected a whole number from 0 on, not 'x'",
            ],
        ),
    ],
)
def test_all_problems_of_a_call_are_reported(payload: Payload, problems: list[str]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        HistoryRequest.parse(payload)

    assert str(refused.value).splitlines() == problems


# --- backfills


@pytest.mark.parametrize(
    ("wish", "page"),
    [
        (LastEvents(2), HistoryPage(tuple(FIVE[3:]), has_more=True)),
        (LastEvents(5), HistoryPage(tuple(FIVE))),
        (LastEvents(9), HistoryPage(tuple(FIVE))),
        (AfterSequence(0), HistoryPage(tuple(FIVE))),
        (AfterSequence(3), HistoryPage(tuple(FIVE[3:]))),
        (AfterSequence(5), HistoryPage(())),
        (AfterTime(START + timedelta(seconds=3)), HistoryPage(tuple(FIVE[3:]))),
        (AfterPublication(PublicationId(3)), HistoryPage(tuple(FIVE[3:]))),
        (AfterPublication(PublicationId(99)), HistoryPage(tuple(FIVE), is_complete=False)),
    ],
)
def test_each_backfill_start_selects_its_events(wish: BackfillStart, page: HistoryPage) -> None:
    assert backfill_page(FIVE, wish, ME) == page


@pytest.mark.parametrize(
    ("sequence", "is_complete"), [(0, True), (1, False), (2, True), (3, True)], ids=["all", "gap", "next", "later"]
)
def test_a_backfill_after_an_expired_event_is_incomplete(sequence: int, is_complete: bool) -> None:  # noqa: FBT001
    assert backfill_page(FIVE[2:], AfterSequence(sequence), ME).is_complete is is_complete


def test_each_topic_of_a_pattern_continues_after_its_own_number() -> None:
    """A delayed event is included, and a topic without a number starts at the given time."""
    overtaken, seen = logged(1, "logs.a"), logged(2, "logs.b")
    earlier, later = logged(3, "logs.c"), logged(4, "logs.c")

    page = backfill_page(
        [overtaken, seen, earlier, later], AfterTopicSequences(later.at, {"logs.a": 0, "logs.b": 2}), ME
    )

    assert page == HistoryPage((overtaken, later))


def test_an_event_that_was_logged_long_after_its_publication_is_as_new_as_its_log() -> None:
    early, late = logged(1, "logs.a"), replace(logged(2, "logs.a"), delay_ms=60_000)

    page = backfill_page([early, late], AfterTopicSequences(START + timedelta(seconds=62), {}), ME)

    assert page == HistoryPage((late,))


def test_a_gap_in_one_topic_makes_the_backfill_incomplete() -> None:
    events = [logged(1, "logs.a"), logged(5, "logs.b")]

    assert backfill_page(events, AfterTopicSequences(START, {"logs.a": 1, "logs.b": 4}), ME).is_complete
    assert not backfill_page(events, AfterTopicSequences(START, {"logs.a": 1, "logs.b": 3}), ME).is_complete


def test_a_backfill_from_an_empty_log_is_complete_only_after_number_0() -> None:
    assert backfill_page([], AfterSequence(0), ME) == HistoryPage(())
    assert backfill_page([], AfterSequence(4), ME) == HistoryPage((), is_complete=False)


@pytest.mark.parametrize(
    "wish",
    [
        LastEvents(5),
        AfterSequence(0),
        AfterTime(START),
        AfterPublication(PublicationId(1)),
        AfterTopicSequences(START, {"logs.a": 0}),
    ],
    ids=str,
)
def test_a_backfill_respects_the_audience(wish: BackfillStart) -> None:
    events = [logged(1), logged(2, audience=FOR_BOB), logged(3, audience=NOT_FOR_SOURCES)]

    assert 2 not in numbers(backfill_page(events, wish, ME))
    assert 3 in numbers(backfill_page(events, wish, ME))


def test_last_events_are_counted_among_those_that_admit_the_session() -> None:
    assert numbers(backfill_page([logged(1), logged(2, audience=FOR_BOB)], LastEvents(1), ME)) == [1]


# --- retained events


def kept(number: int, topic: str = "logs.a", audience: Audience = UNRESTRICTED) -> LoggedEvent:
    return replace(logged(number, topic, audience=audience), is_retained=True, payload=Payload((number,)))


def test_each_topic_has_its_latest_retained_event() -> None:
    events = [kept(1), kept(2, "logs.b"), kept(3), logged(4)]

    assert latest_retained(events, ME) == [kept(2, "logs.b"), kept(3)]


def test_the_retained_event_is_the_latest_that_admits_the_subscriber() -> None:
    """Advanced profile, «Event Retention»; a session's own publications are excluded."""
    events = [kept(1), kept(2, audience=FOR_BOB), kept(3, audience=BY_ME)]

    assert latest_retained(events, ME) == [kept(1)]
    assert latest_retained(events, Listener(SessionId(8), "bob", "subscriber")) == [kept(3, audience=BY_ME)]
    assert latest_retained([], ME) == []


def test_a_retained_event_without_a_payload_removes_the_one_before_it() -> None:
    removal = replace(kept(2), payload=Payload())

    assert latest_retained([kept(1), removal, kept(3, "logs.b")], ME) == [kept(3, "logs.b")]
    assert latest_retained([kept(1), replace(removal, omitted_bytes=200_000)], ME)


# --- retention


def test_the_retention_rule_of_the_longest_prefix_applies() -> None:
    rules = {"": Retention(1), "logs.": Retention(2), "logs.a": Retention(3)}

    assert retention_of(RoutingKey("logs.abc"), rules, otherwise=Retention()) == Retention(3)
    assert retention_of(RoutingKey("logs.b"), rules, otherwise=Retention()) == Retention(2)
    assert retention_of(RoutingKey("other"), rules, otherwise=Retention()) == Retention(1)
    assert retention_of(RoutingKey("other"), {"logs.": Retention(2)}, otherwise=Retention(9)) == Retention(9)


# --- EVENT messages


def test_an_event_of_a_pattern_subscription_has_its_topic() -> None:
    exact = TopicPattern.parse("logs.a")

    assert event_for(exact, logged(3)).details == {"_at": "2026-11-21T20:00:03.000Z", "_seq": 3}
    assert event_for(LOGS, logged(3)).details["topic"] == "logs.a"
    assert event_for(LOGS, replace(logged(3), sequence=None)).details.keys() == {"topic", "_at"}


def test_an_event_names_its_publisher_only_if_disclosed() -> None:
    event = event_for(TopicPattern.parse("logs.a"), replace(logged(3), disclosed=ME), is_retained=True)

    assert event == Event(
        TopicPattern.parse("logs.a").subscription_id,
        PublicationId(3),
        {
            "_at": "2026-11-21T20:00:03.000Z",
            "_seq": 3,
            "publisher": 7,
            "publisher_authid": "alice",
            "publisher_authrole": "subscriber",
            "retained": True,
        },
    )


def test_the_result_has_the_events_as_arguments_and_whether_there_are_more() -> None:
    page = HistoryPage((replace(logged(3), payload=Payload((1,), {"k": 2})), logged(4)), has_more=True)

    first, second = (event_for(LOGS, event) for event in page.events)
    assert get_events_result(page, LOGS) == Payload(
        (
            {
                "timestamp": "2026-11-21T20:00:03.000Z",
                "subscription": LOGS.subscription_id,
                "publication": 3,
                "details": first.details,
                "args": [1],
                "kwargs": {"k": 2},
            },
            {
                "timestamp": "2026-11-21T20:00:04.000Z",
                "subscription": LOGS.subscription_id,
                "publication": 4,
                "details": second.details,
            },
        ),
        {"complete": True, "more": True},
    )


@given(st.lists(st.integers(0, 3_000), max_size=12), st.integers(3_500, 20_000))
def test_the_result_fits_into_a_message_and_reports_that_there_are_more(sizes: list[int], maximum_bytes: int) -> None:
    events = tuple(replace(logged(n), payload=Payload(("x" * size,))) for n, size in enumerate(sizes, start=1))

    payload = get_events_result(HistoryPage(events), LOGS, maximum_bytes=maximum_bytes)

    assert size_bytes(serialize(Result(RequestId(1), {}, payload))) <= maximum_bytes
    assert payload.keywords["more"] is (len(payload.arguments) < len(events))
    assert bool(payload.arguments) is bool(events)


@pytest.mark.parametrize("extra", [0, 1, 1_000_000], ids=["as large as fits", "a byte more", "as large as SQS takes"])
def test_an_oversized_event_has_its_size_instead_of_its_payload(extra: int) -> None:
    empty = event_for(LOGS, replace(logged(3), payload=Payload(("",))))
    text = "x" * (MAXIMUM_EVENT_BYTES - size_bytes(serialize(empty)) + extra)
    event = event_for(LOGS, replace(logged(3), payload=Payload((text,))))

    found = size_limited(event)

    if extra:
        assert found.details == {**event.details, "_omitted_bytes": MAXIMUM_EVENT_BYTES + extra}
        assert found.payload == Payload()
    else:
        assert found == event


def test_the_largest_event_fits_into_a_result() -> None:
    empty = event_for(LOGS, replace(logged(3), payload=Payload(("",))))
    text = "x" * (MAXIMUM_EVENT_BYTES - size_bytes(serialize(empty)))

    largest = replace(logged(3), payload=Payload((text,)))

    payload = get_events_result(HistoryPage((largest, *map(logged, range(4, 20)))), LOGS)

    assert [one["args"] for one in payload.arguments if isinstance(one, dict) and "args" in one] == [[text]]
    assert payload.keywords["more"] is True
    assert size_bytes(serialize(Result(RequestId(2**53), {}, payload))) <= MAXIMUM_MESSAGE_BYTES


def test_a_result_has_at_least_one_event() -> None:
    assert len(get_events_result(HistoryPage((logged(3), logged(4))), LOGS, maximum_bytes=0).arguments) == 1


@pytest.mark.parametrize("is_retained", [False, True])
@pytest.mark.parametrize("size", [1, MAXIMUM_EVENT_BYTES])
def test_a_text_is_the_event_within_the_size_limit(size: int, *, is_retained: bool) -> None:
    event = replace(logged(3), payload=Payload(("x" * size,)))

    text = EventTexts().text(LOGS, event, is_retained=is_retained)

    assert text == serialize(size_limited(event_for(LOGS, event, is_retained=is_retained)))


def test_an_event_is_serialized_once_for_all_receivers_of_a_subscription() -> None:
    texts = EventTexts()
    event = replace(logged(3), payload=Payload(("x",)))

    first, again, copy = texts.text(LOGS, event), texts.text(LOGS, event), texts.text(LOGS, replace(event))

    assert first is again is copy
    assert texts.text(TopicPattern.parse("logs.a"), event) != first


def test_a_publication_id_that_another_event_has_too_never_gives_its_text() -> None:
    texts = EventTexts()
    event, other = logged(3), replace(logged(3), payload=Payload(("secret",)))

    assert texts.text(LOGS, event) != texts.text(LOGS, other)
    assert texts.text(LOGS, event) == serialize(event_for(LOGS, event))


def test_the_kept_texts_are_bounded() -> None:
    texts = EventTexts(maximum=2)
    first = texts.text(LOGS, logged(1))

    for number in range(2, 5):
        texts.text(LOGS, logged(number))

    assert texts.text(LOGS, logged(1)) == first
    assert texts.text(LOGS, logged(1)) is not first
