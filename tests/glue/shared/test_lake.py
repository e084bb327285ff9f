"""Reads of raw hours, and writes of tables: idempotent, with concurrent runs, and with columns of a later version."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import Row

from glue_jobs.shared.arguments import TimeWindow
from glue_jobs.shared.commits import ConflictingRunsError, is_conflict, repeat_on_conflict
from glue_jobs.shared.lake import read_raw
from glue_jobs.transforms import tables
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

DAY = TimeWindow.parse({"day": "2026-11-21"})


def ids(frame) -> list[str]:
    return sorted(row.event_id for row in frame.select("event_id").collect())


def test_raw_events_are_read_by_the_hour_of_their_arrival(spark, history, tmp_path):
    for folder in ("dt=2026-11-20/hour=23", "dt=2026-11-21/hour=00", "dt=2026-11-21/hour=01", "dt=2026-11-21/hour=02"):
        history({"event_id": folder}).write.parquet(str(tmp_path / folder))

    read = read_raw(spark, f"{tmp_path}/", TimeWindow.parse({"to": "2026-11-21T02:07", "hours": "2"}))

    assert ids(read) == ["dt=2026-11-21/hour=00", "dt=2026-11-21/hour=01"]


def test_hours_without_a_file_are_read_as_no_events(spark, tmp_path):
    assert read_raw(spark, str(tmp_path), DAY).collect() == []


def test_a_day_is_replaced_and_its_neighbours_stay(lake, history, at):
    other = {"event_id": "other", "occurred_at": at("2026-11-22 00:00:00")}
    lake.replace("events", history(other), TimeWindow.parse({"day": "2026-11-22"}))
    lake.replace("events", history({"event_id": "old", "occurred_at": at("2026-11-21 10:00:00")}), DAY)
    new = history({"event_id": "new", "occurred_at": at("2026-11-21 23:59:59.999")}, other | {"event_id": "no"})

    for _ in range(2):
        lake.replace("events", new, DAY)

    assert ids(lake.spark.table(lake.name("events"))) == ["new", "other"]
    assert ids(lake.events(DAY)) == ["new"]


def test_a_day_without_new_rows_is_emptied(lake, history, at):
    lake.replace("events", history({"event_id": "old", "occurred_at": at("2026-11-21 10:00:00")}), DAY)

    lake.replace("events", history(), DAY)

    assert lake.events(DAY).count() == 0


def test_a_table_with_a_date_column_is_replaced_in_days(lake, spark):
    report = frame(spark, [(date(2026, 11, 21), "m", None, 9, 16)], tables.RENDEZVOUS_DAILY.schema)

    for _ in range(2):
        lake.replace("rendezvous_daily", report, DAY)

    assert lake.rows("rendezvous_daily", DAY).collect() == [
        Row(day=date(2026, 11, 21), metric="m", label=None, exact=9, shown=16)
    ]


def test_replacing_a_part_of_a_day_raises(lake, history):
    with pytest.raises(ValueError, match="events is replaced in whole days, not from 2026-11-21 08:00"):
        lake.replace("events", history(), TimeWindow.parse({"to": "2026-11-21T10:00", "hours": "2"}))


def test_a_replacement_fails_when_another_run_has_changed_its_days_and_no_others(lake, history, at):
    lake.replace("events", history({"event_id": "old", "occurred_at": at("2026-11-21 10:00:00")}), DAY)
    since = lake.snapshot("events")
    lake.merge_events(history({"event_id": "elsewhere", "occurred_at": at("2026-11-22 10:00:00")}))
    new = history({"event_id": "new", "occurred_at": at("2026-11-21 11:00:00")})
    lake.replace("events", new, DAY, since=since)
    lake.merge_events(history({"event_id": "late", "occurred_at": at("2026-11-21 12:00:00")}))

    with pytest.raises(Exception, match="Found conflicting files"):
        lake.replace("events", new, DAY, since=since)

    assert ids(lake.events(DAY)) == ["late", "new"]


def test_a_replacement_of_the_first_rows_fails_when_another_run_has_added_some(lake, history, at):
    since = lake.snapshot("events")
    lake.merge_events(history({"event_id": "other", "occurred_at": at("2026-11-21 12:00:00")}))

    with pytest.raises(Py4JJavaError, match="Found conflicting files") as raised:
        lake.replace("events", history({"event_id": "new", "occurred_at": at("2026-11-21 11:00:00")}), DAY, since=since)

    assert is_conflict(raised.value)
    assert ids(lake.events(DAY)) == ["other"]


def test_a_table_without_rows_has_no_snapshot(lake):
    assert lake.snapshot("events") == 0


def at_once(write: Callable[[], None], runs: int = 4) -> None:
    with ThreadPoolExecutor(runs) as threads:
        list(threads.map(lambda _: write(), range(runs)))


def test_runs_that_merge_at_once_insert_each_event_once(lake, history, at):
    lake.ensure("events")
    rows = [{"event_id": f"e{number}", "occurred_at": at("2026-11-21 10:00:00")} for number in range(3)]

    at_once(lambda: lake.merge_events(history(*rows)))

    assert ids(lake.events(DAY)) == ["e0", "e1", "e2"]


def test_runs_that_replace_a_day_at_once_leave_the_rows_of_one(lake, spark):
    report = frame(spark, [(date(2026, 11, 21), "m", None, 9, 16)], tables.RENDEZVOUS_DAILY.schema)

    at_once(lambda: lake.replace("rendezvous_daily", report, DAY))

    assert lake.rows("rendezvous_daily", DAY).count() == 1


def test_a_write_that_is_always_rejected_ends_with_what_to_do(lake, history, at):
    since = lake.snapshot("events")
    lake.merge_events(history({"event_id": "other", "occurred_at": at("2026-11-21 12:00:00")}))

    with pytest.raises(ConflictingRunsError, match="run the job again when they have ended"):
        repeat_on_conflict(lambda: lake.replace("events", history(), DAY, since=since))


def add_column(lake, table: str) -> None:
    lake.ensure(table)
    lake.spark.sql(f"ALTER TABLE {lake.name(table)} ADD COLUMN later string FIRST")


def test_values_of_a_column_that_only_a_later_version_knows_stay(lake, history, at):
    known = {"event_id": "known", "occurred_at": at("2026-11-21 10:00:00")}
    lake.merge_events(history(known))
    add_column(lake, "events")
    lake.spark.sql(f"UPDATE {lake.name('events')} SET later = 'kept'")  # noqa: S608 - contains no user input

    lake.merge_events(history(known, {"event_id": "new", "occurred_at": at("2026-11-21 11:00:00")}))
    lake.replace("events", lake.events(DAY), DAY)

    found = {row.event_id: row.later for row in lake.events(DAY).collect()}
    assert found == {"known": "kept", "new": None}


def test_a_report_is_replaced_beside_a_column_that_only_a_later_version_knows(lake, spark):
    add_column(lake, "rendezvous_daily")

    lake.replace(
        "rendezvous_daily", frame(spark, [(date(2026, 11, 21), "m", None, 9, 16)], tables.RENDEZVOUS_DAILY.schema), DAY
    )

    assert [(row.metric, row.later) for row in lake.rows("rendezvous_daily", DAY).collect()] == [("m", None)]


def test_late_events_are_merged_once_into_their_own_days(lake, history, at):
    known = {"event_id": "known", "occurred_at": at("2026-11-21 10:00:00"), "labels": {"nat": "unknown"}}
    lake.replace("events", history(known), DAY)
    late = history({"event_id": "late", "occurred_at": at("2026-11-19 10:00:00"), "labels": {}}, known)

    for _ in range(2):
        lake.merge_events(late)

    assert ids(lake.spark.table(lake.name("events"))) == ["known", "late"]


@pytest.mark.parametrize("turned", [False, True], ids=["the-earlier-first", "the-earlier-last"])
def test_the_earlier_of_two_duplicates_remains_in_any_order_of_arrival(lake, history, at, turned):
    copies = [
        {"event_id": "a", "occurred_at": at("2026-11-20 23:59:59"), "outcome": "first"},
        {"event_id": "a", "occurred_at": at("2026-11-21 00:00:01"), "outcome": "second"},
    ]

    for copy in reversed(copies) if turned else copies:
        lake.merge_events(history(copy))

    kept = lake.spark.table(lake.name("events")).collect()
    assert [row.outcome for row in kept] == ["first"]


def test_a_merge_of_no_events_makes_no_commit(lake, history):
    lake.merge_events(history())

    assert lake.spark.table(f"{lake.name('events')}.snapshots").count() == 0
