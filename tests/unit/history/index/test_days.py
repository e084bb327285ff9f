"""The document of a day in the index, and the raw hours that it does not cover."""

from datetime import UTC, date, datetime, timedelta

import pytest

from signalbox.history.index.days import (
    IndexedDay,
    InvalidIndex,
    RawHours,
    Segment,
    arrival_end,
    day_of_key,
    days_of,
    unsettled_hours,
)
from signalbox.history.lookup import EventWindow

DAY = date(2026, 11, 20)
DOCUMENT = {
    "version": 1,
    "segments": [
        {
            "folder": "2026-11-20/ab",
            "ending": "-1.gz.parquet",
            "files": ["bucket=0/part-00003", "", "bucket=2/part-00001"],
        }
    ],
    "read_at": {"09": "2026-11-20T11:00:00+00:00", "10": "2026-11-20T11:00:00+00:00"},
}


def at(hour: int, minute: int = 0, *, day: int = 20) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_an_id_is_in_the_file_of_its_bucket():
    (segment,) = IndexedDay.parse(DOCUMENT).segments

    # crc32 modulo 3 is 0 for a, 1 for g and 2 for b.
    assert segment.key("a") == "index/2026-11-20/ab/bucket=0/part-00003-1.gz.parquet"
    assert segment.key("b") == "index/2026-11-20/ab/bucket=2/part-00001-1.gz.parquet"
    assert segment.key("g") is None
    assert Segment("f", "", ()).key("a") is None


def test_documents_of_a_day_are_valid_together():
    other = {
        "version": 1,
        "segments": [{**DOCUMENT["segments"][0], "folder": "2026-11-20/cd"}],
        "replaced": {"2026-11-20/ab": "2026-11-20T12:00:00+00:00"},
        "read_at": {"10": "2026-11-20T10:30:00+00:00", "11": "2026-11-20T12:00:00+00:00"},
    }
    documents = [IndexedDay.parse(DOCUMENT), IndexedDay.parse(other)]

    joined = IndexedDay.join(documents)
    assert [segment.folder for segment in joined.segments] == ["2026-11-20/cd"]
    assert joined.read_at == {9: at(11), 10: at(11), 11: at(12)}
    assert IndexedDay.join([*documents, None]).read_at == {}


def test_an_hour_is_settled_if_it_was_read_an_hour_after_its_end():
    day = IndexedDay.parse(DOCUMENT)

    assert [hour for hour in range(24) if day.is_settled(DAY, hour)] == [9]


def test_a_raw_file_has_been_read_if_it_was_complete_some_minutes_before():
    day = IndexedDay.parse(DOCUMENT)

    assert day.has_read(10, modified_at=at(10, 54))
    assert not day.has_read(10, modified_at=at(10, 55))
    assert not day.has_read(11, modified_at=at(10, 54))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": 2}, "index.version: expected 1, not 2"),
        ({"segments": [{"files": []}]}, r"index.segments\[0\].folder: is missing"),
        ({"read_at": {"noon": "2026-11-20T11:00:00+00:00"}}, "index.read_at: expected times by hour, not 'noon'"),
        ({"read_at": {"10": "late"}}, "not '10': 'late'"),
    ],
    ids=["version", "segment", "hour", "time"],
)
def test_another_document_is_refused_with_its_problem(changes, problem):
    with pytest.raises(InvalidIndex, match=problem):
        IndexedDay.parse(DOCUMENT | changes)


def test_all_hours_of_a_window_are_unsettled_without_an_index():
    window = EventWindow(at(22, 30, day=19), at(3))

    assert list(unsettled_hours({}, window, at(2, 59))) == [
        RawHours(date(2026, 11, 19), 22, 23),
        RawHours(DAY, 0, 2),
    ]


def test_the_unsettled_hours_begin_with_the_first_that_is_not_settled():
    indexed = {DAY: IndexedDay(read_at={hour: at(12) for hour in range(12)})}
    window = EventWindow(at(0), at(13))

    assert list(unsettled_hours(indexed, window, at(12, 30))) == [RawHours(DAY, 11, 12)]


def test_a_settled_day_has_no_raw_hours():
    indexed = {DAY: IndexedDay(read_at={hour: at(2, day=21) for hour in range(24)})}

    assert list(unsettled_hours(indexed, EventWindow(at(1), at(4)), at(23))) == []


def test_events_of_a_past_window_may_arrive_a_day_later():
    window = EventWindow(at(1), at(4))

    assert arrival_end(window, at(9, day=23)) == at(4, day=21)
    assert arrival_end(window, at(9)) == at(9)


def test_the_hour_of_a_raw_file_is_in_its_key():
    hours = RawHours(DAY, 9, 11)

    assert hours.start_after == "raw/dt=2026-11-20/hour=09"
    assert hours.hour_of("raw/dt=2026-11-20/hour=09/signalbox-1.parquet") == 9
    assert hours.hour_of("raw/dt=2026-11-20/hour=12/signalbox-1.parquet") is None
    assert hours.hour_of("raw/dt=2026-11-20/other") is None


def test_days_are_those_of_utc():
    plus_two = datetime.fromisoformat("2026-11-20T01:00:00+02:00")

    assert days_of(plus_two, plus_two + timedelta(hours=1)) == [date(2026, 11, 19), DAY]
    assert day_of_key("index/days/2026-11-20-1.json") == "2026-11-20"
