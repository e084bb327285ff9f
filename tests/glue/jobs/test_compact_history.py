"""The job `compact_history`, whose table does not depend on the order and number of its runs."""

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame

from glue_jobs.compact_history import main
from glue_jobs.shared import compaction
from glue_jobs.shared.lake import Lake
from tests.glue.frames import new_lake

pytestmark = [pytest.mark.spark, pytest.mark.release]

FIRST, SECOND, THIRD = "2026-11-20", "2026-11-21", "2026-11-22"


@pytest.fixture
def raw(history: Callable[..., DataFrame], at, tmp_path):
    """Raw history of three days, with duplicates across midnight, late events, and an event without id and topic."""
    folders = {
        f"dt={FIRST}/hour=23": [
            {"event_id": "a", "occurred_at": at(f"{FIRST} 23:10:00"), "topic": "t", "sequence": 2},
            {"event_id": "b", "occurred_at": at(f"{FIRST} 23:59:59.999"), "outcome": "first"},
            {"event_id": None, "occurred_at": at(f"{FIRST} 23:00:00"), "labels": {"nat": "unknown"}},
        ],
        f"dt={SECOND}/hour=00": [
            {"event_id": "b", "occurred_at": at(f"{SECOND} 00:00:01"), "outcome": "again"},
            {"event_id": "c", "occurred_at": at(f"{SECOND} 00:10:00"), "outcome": "x"},
            {"event_id": "c", "occurred_at": at(f"{SECOND} 00:10:00"), "outcome": "y"},
        ],
        f"dt={SECOND}/hour=23": [{"event_id": "d", "occurred_at": at(f"{SECOND} 23:00:00")}],
        f"dt={THIRD}/hour=02": [
            {"event_id": "late", "occurred_at": at(f"{SECOND} 12:00:00"), "topic": "t", "sequence": 1},
            {"event_id": "very late", "occurred_at": at(f"{FIRST} 12:00:00")},
            {"event_id": "timeless", "occurred_at": None},
        ],
    }
    for folder, rows in folders.items():
        history(*rows).write.parquet(str(tmp_path / "raw" / folder))
    return tmp_path / "raw"


def compact(lake: Lake, raw, *words: str) -> DataFrame:
    main(["compact_history.py", "--history_path", str(raw), "--database", lake.database, "--maintain", "no", *words])
    return events(lake)


def events(lake: Lake) -> DataFrame:
    return lake.spark.table(lake.name("events")).orderBy("occurred_at", "event_id")


def test_each_event_is_in_its_own_day_once_as_its_earliest_duplicate(lake, raw):
    found = compact(lake, raw, "--day", THIRD, "--days", "3").select("event_id", "occurred_at").collect()

    kept = {row.event_id: f"{row.occurred_at:%d %H}" for row in found if len(row.event_id) < 10}
    assert kept == {"a": "20 23", "b": "20 23", "c": "21 00", "d": "21 23", "late": "21 12", "very late": "20 12"}
    assert len(found) == 7  # including the event whose id is a hash of its fields


def test_a_day_with_many_duplicates_is_deduplicated_as_a_whole(lake, raw, monkeypatch):
    at_once = compact(new_lake(lake.spark, f"{lake.database}_few"), raw, "--day", THIRD, "--days", "3")
    monkeypatch.setattr(compaction, "MAX_REPEATED_IDS", 0)

    assert_df_equality(compact(lake, raw, "--day", THIRD, "--days", "3"), at_once)


@pytest.mark.parametrize(
    "runs",
    [
        [("--day", FIRST), ("--day", SECOND), ("--day", THIRD)],
        [("--day", THIRD), ("--day", FIRST), ("--day", SECOND), ("--day", FIRST)],
        [("--from", FIRST, "--to", f"{SECOND}T03:00"), ("--from", f"{SECOND}T03:00", "--to", f"{THIRD}T03:00")],
        [
            ("--to", f"{THIRD}T03:10", "--hours", "3"),
            ("--day", SECOND, "--days", "2"),
            ("--day", SECOND, "--days", "2"),
        ],
    ],
    ids=["day-by-day", "backfill-backwards", "by-hours", "mixed"],
)
def test_the_table_does_not_depend_on_the_windows_and_their_order(lake, raw, runs):
    at_once = compact(new_lake(lake.spark, f"{lake.database}_at_once"), raw, "--day", THIRD, "--days", "3")

    for words in runs:
        compact(lake, raw, *words)

    assert_df_equality(events(lake), at_once)


@pytest.mark.parametrize("days", [(SECOND, THIRD), (THIRD, SECOND), (SECOND, THIRD, SECOND)], ids=", ".join)
def test_an_event_that_occurs_long_after_its_arrival_is_in_its_own_day_once(lake, history, at, tmp_path, days):
    ahead = history({"event_id": "ahead", "occurred_at": at(f"{THIRD} 01:00:00")})
    ahead.write.parquet(str(tmp_path / f"dt={SECOND}" / "hour=20"))

    for day in days:
        found = compact(lake, tmp_path, "--day", day)

    assert [f"{row.occurred_at:%d %H}" for row in found.collect()] == ["22 01"]


@pytest.mark.parametrize("words", [("--day", FIRST), ("--to", f"{FIRST}T11", "--hours", "1")], ids=["day", "hour"])
def test_an_event_of_another_century_is_kept_as_it_is(lake, tmp_path, words):
    hour = tmp_path / f"dt={FIRST}" / "hour=10"
    hour.mkdir(parents=True)
    times = [datetime(1899, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 11, 20, 10, tzinfo=UTC)]
    rows = pa.table({"event_id": ["old", "new"], "occurred_at": pa.array(times, pa.timestamp("us", tz="UTC"))})
    pq.write_table(rows, hour / "part.parquet", use_deprecated_int96_timestamps=True)

    found = compact(lake, tmp_path, *words).selectExpr("event_id", "string(occurred_at)").collect()

    assert found == [("old", "1899-12-31 23:59:59"), ("new", "2026-11-20 10:00:00")]


@pytest.mark.parametrize("words", [("--day", FIRST), ("--to", f"{FIRST}T23:59", "--hours", "23")], ids=["day", "hours"])
def test_events_are_compacted_beside_a_column_that_only_a_later_version_knows(lake, raw, words):
    before = compact(lake, raw, "--day", FIRST).collect()
    lake.spark.sql(f"ALTER TABLE {lake.name('events')} ADD COLUMN later string")

    assert compact(lake, raw, *words).drop("later").collect() == before


@pytest.mark.parametrize("words", [("--day", FIRST), ("--to", f"{FIRST}T23:59", "--hours", "23")], ids=["day", "hours"])
def test_raw_files_that_cannot_be_read_are_left_out_with_their_names(lake, history, at, tmp_path, *, capsys, words):
    hour = tmp_path / f"dt={FIRST}" / "hour=10"
    history({"event_id": "a", "occurred_at": at(f"{FIRST} 10:00:00")}).write.parquet(str(hour))
    (whole,) = hour.glob("*.parquet")
    (hour / "cut off=1.parquet").write_bytes(whole.read_bytes()[:-100])
    (hour / "text.parquet").write_text("no Parquet")
    (hour / "empty.parquet").touch()

    found = compact(lake, tmp_path, *words)

    assert [row.event_id for row in found.collect()] == ["a"]
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "left out" in line)
    assert line.startswith("compact_history: 3 raw files cannot be read and are left out: ")
    assert all(f"{hour}/{name}.parquet" in line for name in ("cut off=1", "empty", "text"))


def test_a_rerun_loses_no_event_whose_raw_file_has_expired(lake, raw, tmp_path):
    before = compact(lake, raw, "--day", SECOND, "--days", "2").collect()

    assert compact(lake, tmp_path / "expired", "--day", SECOND, "--days", "2").collect() == before


def test_days_beyond_the_retention_are_deleted(lake, raw):
    compact(lake, raw, "--day", SECOND, "--days", "2")

    kept = compact(lake, raw, "--day", SECOND, "--retention_days", "1")

    assert {row.event_id for row in kept.collect()} == {"c", "d", "late"}


def test_raw_files_of_json_lines_are_read_with_the_option(lake, tmp_path):
    hour = tmp_path / f"dt={FIRST}" / "hour=10"
    hour.mkdir(parents=True)
    (hour / "part.json").write_text('{"event_id":"a","occurred_at":"2026-11-20 10:00:00.123","labels":{"nat":"x"}}\n')

    (row,) = compact(lake, tmp_path, "--day", FIRST, "--raw_format", "json").collect()

    assert (row.event_id, row.labels) == ("a", {"nat": "x"})
    assert f"{row.occurred_at:%S.%f}" == "00.123000"


def test_maintenance_compacts_small_files_and_keeps_all_rows(lake, raw, history, at):
    for number in range(5):
        row = {"event_id": f"e{number}", "occurred_at": at(f"{SECOND} 05:00:00"), "topic": "t", "sequence": number}
        lake.merge_events(history(row))
    before = events(lake).collect()

    main(["", "--history_path", f"{raw}/none", "--database", lake.database, "--to", THIRD, "--hours", "1"])

    assert events(lake).collect() == before
    assert lake.spark.table(f"{lake.name('events')}.files").count() == 1
