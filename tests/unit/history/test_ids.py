"""The ids of an event, the keys of its rows in the index, and its parsed document."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.history.event import HistoryEvent
from signalbox.history.ids import LINK_LABELS, ids_of, search_keys
from signalbox.history.lookup import EventWindow, unique_events
from signalbox.history.stored_event import InvalidEvent, parse_event

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def event(event_id: str = "routed:m1:q", at: datetime = NOON, **fields) -> HistoryEvent:
    return HistoryEvent(event_id, at, "exchange", "routed", "delivered", **fields)


def test_an_event_names_its_own_id_its_message_and_every_id_in_a_label_that_links():
    one = event(message_id="m1", labels={"copy": "c1", "publications": "7,8,,9", "publisher": "alice"})

    assert ids_of(one) == {"routed:m1:q", "m1", "c1", "7", "8", "9"}
    assert "publisher" not in LINK_LABELS


def test_an_event_without_a_message_names_only_its_own_id():
    assert ids_of(event("session:started:4")) == {"session:started:4"}


def test_an_event_id_is_searched_by_its_parts_and_any_other_id_as_it_is():
    assert search_keys("routed:m1:q:") == {"routed:m1:q:", "routed", "m1", "q"}
    assert search_keys("m1") == {"m1"}


def test_a_window_of_days_includes_this_moment_and_excludes_its_end():
    window = EventWindow.before(NOON, days=1)

    assert NOON in window
    assert NOON - timedelta(days=1) in window
    assert window.end not in window
    assert NOON - timedelta(days=1, microseconds=1) not in window


def test_of_an_events_duplicates_the_earliest_remains_in_order_of_time():
    late, early = event(at=NOON + timedelta(seconds=2)), event(at=NOON, attempt=1)
    other = event("other", at=NOON + timedelta(seconds=1))

    assert unique_events([late, other, early]) == [early, other]


@pytest.mark.parametrize(
    "long", [{"reason": "x" * 100_001}, {"labels": {"publisher": "é" * 100_000}}], ids=["text", "label"]
)
def test_an_event_is_shorter_than_firehose_accepts_whatever_its_texts_are(long):
    line = event(**long).to_json()

    found = parse_event(json.loads(line))
    assert len(line) < 5_000
    assert found.event_id == event().event_id
    assert 500 in {len(found.reason or ""), *map(len, found.labels.values())}


def test_a_parsed_document_is_the_event_that_wrote_it():
    one = event(
        at=NOON + timedelta(milliseconds=7),
        reason="r",
        message_id="m1",
        topic="a.b",
        sequence=3,
        source="x_a",
        destination="q_b",
        size_bytes=12,
        latency_ms=-4,
        attempt=1,
        labels={"copy": "c"},
    )

    assert parse_event(json.loads(one.to_json())) == one
    assert parse_event(json.loads(event().to_json()) | {"version": 2, "later": True}) == event()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"event_id": None}, "event.event_id: is missing"),
        ({"occurred_at": "noon"}, "event.occurred_at: expected YYYY"),
        ({"latency_ms": "4"}, "event.latency_ms: expected a number, not '4'"),
        ({"attempt": True}, "event.attempt: expected a number"),
        ({"labels": {"copy": 4}}, "event.labels.copy: expected a text"),
    ],
    ids=["id", "time", "text", "flag", "label"],
)
def test_a_document_that_is_no_event_is_refused_with_its_problem(changes, problem):
    with pytest.raises(InvalidEvent, match=problem):
        parse_event(json.loads(event().to_json()) | changes)
