"""The index of events by id, as compaction writes it and the core reads it."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from glue_jobs import compact_history
from glue_jobs.shared import event_index
from glue_jobs.shared.arguments import TimeWindow
from glue_jobs.shared.event_index import EventIndex, whole_hours_of_days
from glue_jobs.transforms.event_ids import LINK_LABELS, index_rows
from signalbox.aws.history.objects import ObjectPart
from signalbox.aws.history.parquet_files import IndexFile, ObjectFile
from signalbox.history import ids
from signalbox.history.event import HistoryEvent
from signalbox.history.index.days import IndexedDay
from signalbox.history.lookup import unique_events
from signalbox.history.stored_event import parse_event

pytestmark = [pytest.mark.spark, pytest.mark.release]

FIRST, SECOND, THIRD = date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 22)


def window(first: date, days: int = 1) -> TimeWindow:
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return TimeWindow(start, start + timedelta(days=days))


def indexed(path: Path, day: date) -> IndexedDay:
    documents = (path / "index" / "days").glob(f"{day}-*.json")
    return IndexedDay.join([IndexedDay.parse(json.loads(one.read_text())) for one in documents])


def found(path: Path, day: date, id_: str) -> list[HistoryEvent]:
    """Return the events of an id from each segment of a day, as a lookup reads them."""
    events = []
    for segment in indexed(path, day).segments:
        key = segment.key(id_)
        if key is not None:
            file = IndexFile(ObjectFile(ObjectPart((path / key).read_bytes(), 0), lambda start, end: b""))
            events += [parse_event(json.loads(text)) for text in file.events(id_)]
    return events


def names(path: Path, day: date, id_: str) -> list[str]:
    return sorted(event.event_id for event in found(path, day, id_))


@pytest.fixture
def event(at: Callable[[str], datetime]) -> Callable[..., dict[str, object]]:
    def row(event_id: str, time: str, **fields: object) -> dict[str, object]:
        return {"event_id": event_id, "occurred_at": at(time), "kind": "routed", "outcome": "delivered"} | fields

    return row


@pytest.fixture
def index(lake, tmp_path) -> EventIndex:
    return EventIndex(lake, str(tmp_path / "index"))


def test_the_labels_that_link_are_those_of_the_core():
    assert LINK_LABELS == ids.LINK_LABELS


def test_an_event_has_a_row_for_each_id_and_for_its_own_unless_the_message_id_is_a_part_of_it(history, event):
    rows = [
        event("routed:m1:q", "2026-11-20 12:00:00", message_id="m1", labels={"copy": "c1", "publisher": "p"}),
        event("other", "2026-11-20 12:00:00", message_id="m2", labels={"publications": "7,8,,7", "file": None}),
        event("session:4", "2026-11-20 12:00:00", labels=None),
    ]

    made = index_rows(history(*rows), buckets=3).collect()

    assert sorted((row.id, json.loads(row.event)["event_id"]) for row in made) == [
        ("7", "other"),
        ("8", "other"),
        ("c1", "routed:m1:q"),
        ("m1", "routed:m1:q"),
        ("m2", "other"),
        ("other", "other"),
        ("session:4", "session:4"),
    ]
    assert {row.bucket for row in made} <= {0, 1, 2}


def test_an_event_is_found_whole_under_each_of_its_ids(history, event, index, tmp_path, monkeypatch):
    monkeypatch.setattr(event_index, "EVENTS_OF_A_BUCKET", 50)
    fields = {"reason": "ü", "topic": "a.b", "sequence": 2**40, "latency_ms": -3, "labels": {"copy": "c7"}}
    rows = [event(f"routed:m{n}:q", "2026-11-20 12:00:00.123", message_id=f"m{n}") for n in range(200)]
    index.add(history(*rows, event("routed:m7:q2", "2026-11-20 12:00:01.5", message_id="m7", **fields)), window(FIRST))

    assert len(indexed(tmp_path, FIRST).segments[0].files) == 5
    assert all(names(tmp_path, FIRST, f"m{n}")[0] == f"routed:m{n}:q" for n in range(0, 200, 13))
    assert names(tmp_path, FIRST, "m7") == ["routed:m7:q", "routed:m7:q2"]
    assert found(tmp_path, FIRST, "c7") == [
        HistoryEvent(
            "routed:m7:q2",
            datetime(2026, 11, 20, 12, 0, 1, 500_000, UTC),
            "rendezvous",
            "routed",
            "delivered",
            message_id="m7",
            **fields,
        )
    ]
    assert found(tmp_path, FIRST, "m200") == []


def test_a_window_that_is_added_again_replaces_its_segment_and_leaves_files_for_current_readers(
    history, event, index, tmp_path, monkeypatch
):
    first = history(event("a", "2026-11-20 12:00:00"))
    for _ in range(3):
        index.add(first, window(FIRST))
    assert len(list((tmp_path / "index" / str(FIRST)).iterdir())) == 3
    monkeypatch.setattr(event_index, "FILES_KEPT_FOR", timedelta(0))
    index.add(history(event("b", "2026-11-20 12:00:00"), event("c", "2026-11-21 00:00:00")), window(SECOND))

    assert len(indexed(tmp_path, FIRST).segments) == 2
    assert names(tmp_path, FIRST, "a") == ["a"]
    assert names(tmp_path, FIRST, "b") == ["b"]
    assert names(tmp_path, SECOND, "c") == ["c"]
    assert len(list((tmp_path / "index" / str(FIRST)).iterdir())) == 2


@pytest.mark.parametrize("replaces", [False, True], ids=["hours", "days"])
def test_runs_that_overlap_keep_the_events_and_files_of_each_other(history, event, index, tmp_path, replaces):
    index.lake.merge_events(history(event("a", "2026-11-20 12:00:00")))
    between = history(event("b", "2026-11-20 23:59:00"))

    class Overlapped(EventIndex):
        """An index in which another run adds a segment after this one has read the state and written its files."""

        def _segment(self, events: DataFrame, day: date, count: int) -> dict[str, Any]:
            made = EventIndex._segment(self, events, day, count)
            index.add(between, window(SECOND))
            return made

    overlapped = Overlapped(index.lake, index.path)
    if replaces:
        overlapped.replace_days(window(FIRST))
    else:
        overlapped.add(history(event("a", "2026-11-20 12:00:00")), window(FIRST))

    assert [names(tmp_path, FIRST, one) for one in "ab"] == [["a"], ["b"]]


def test_a_replaced_day_has_the_events_of_the_table_alone(history, event, index, tmp_path, lake):
    index.add(history(event("gone", "2026-11-20 12:00:00"), event("kept", "2026-11-21 12:00:00")), window(FIRST))
    lake.merge_events(history(event("a", "2026-11-20 23:59:59.999")))

    index.replace_days(window(FIRST))
    index.replace_days(window(THIRD))

    assert names(tmp_path, FIRST, "gone") == []
    assert names(tmp_path, FIRST, "a") == ["a"]
    assert names(tmp_path, SECOND, "kept") == ["kept"]
    assert indexed(tmp_path, THIRD).segments == ()


def test_the_hours_that_were_read_are_kept_with_their_day(index, tmp_path):
    early, late = (datetime(2026, 11, 21, hour, 35, tzinfo=UTC) for hour in (1, 6))
    hours = TimeWindow(datetime(2026, 11, 20, 22, 30, tzinfo=UTC), datetime(2026, 11, 21, 2, 30, tzinfo=UTC))

    index.mark_read(whole_hours_of_days(window(FIRST)), read_at=early)
    index.mark_read(hours, read_at=late)

    first = indexed(tmp_path, FIRST).read_at
    assert (first[0], first[21], first[22], first[23]) == (early, early, late, late)
    assert indexed(tmp_path, SECOND).read_at == dict.fromkeys((0, 1, 2), late)


@pytest.fixture
def raw(history: Callable[..., DataFrame], event, tmp_path) -> Path:
    folders = {
        f"dt={FIRST}/hour=12": [event("routed:m1:q", f"{FIRST} 12:10:00", message_id="m1")] * 2,
        f"dt={SECOND}/hour=00": [event("routed:m1:q", f"{FIRST} 23:59:59", message_id="m1", attempt=2)],
        f"dt={SECOND}/hour=23": [event("late", f"{FIRST} 12:00:00"), event("d", f"{SECOND} 23:00:00")],
    }
    for folder, rows in folders.items():
        history(*rows).write.parquet(str(tmp_path / "raw" / folder))
    return tmp_path / "raw"


@pytest.mark.parametrize(
    "runs",
    [
        [("--day", f"{FIRST}"), ("--day", f"{SECOND}")],
        [("--from", f"{FIRST}", "--to", f"{SECOND}T01:00"), ("--from", f"{SECOND}T01:00", "--to", f"{THIRD}T01:00")],
    ],
    ids=["day-by-day", "by-hours"],
)
def test_compaction_indexes_each_event_in_its_own_day_whatever_the_windows(lake, raw, tmp_path, runs):
    for words in runs:
        common = ["--history_path", str(raw), "--database", lake.database, "--maintain", "no"]
        compact_history.main(["", *common, "--index_path", str(tmp_path / "index"), *words])

    # An event may be in several segments of its day; a lookup returns it once.
    assert [event.occurred_at.hour for event in unique_events(found(tmp_path, FIRST, "m1"))] == [12]
    assert set(names(tmp_path, FIRST, "late")) == {"late"}
    assert set(names(tmp_path, SECOND, "d")) == {"d"}
    assert names(tmp_path, SECOND, "late") == []
    assert set(range(23)) <= set(indexed(tmp_path, SECOND).read_at)


def test_days_beyond_the_retention_leave_the_index(lake, raw, tmp_path):
    arguments = ["", "--history_path", str(raw), "--database", lake.database, "--maintain", "no"]
    arguments += ["--index_path", str(tmp_path / "index"), "--day", f"{SECOND}"]
    compact_history.main([*arguments, "--days", "2"])

    compact_history.main([*arguments, "--retention_days", "1"])

    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == [f"{SECOND}", "days"]
    assert {path.name[:10] for path in (tmp_path / "index" / "days").glob("*.json")} == {f"{SECOND}"}
