"""The schema of raw events, their deduplication and selection by day."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import date, datetime

import pytest
from chispa import assert_df_equality
from pyspark.sql import Row, SparkSession

from glue_jobs.transforms.events import SCHEMA, deduplicated, rounded, within_days
from signalbox.history.event import HistoryEvent
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

SPARK_TYPES = {
    str: {"string"},
    str | None: {"string"},
    int | None: {"int", "bigint"},
    datetime: {"timestamp"},
    Mapping[str, str]: {"map<string,string>"},
}


@pytest.fixture(autouse=True)
def apart(spark: SparkSession) -> Iterator[None]:
    """Distribute duplicates over several partitions, as with many events."""
    alone = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", alone)


def test_schema_names_the_columns_of_an_event_in_their_order():
    assert SCHEMA.names == ["version", *(field.name for field in fields(HistoryEvent))]


def test_schema_equals_the_table_that_the_files_are_written_with():
    from stacks.history.lake import COLUMNS  # noqa: PLC0415 - takes seconds, for the CDK behind it

    assert {field.name: field.dataType.simpleString() for field in SCHEMA} == COLUMNS


@pytest.mark.parametrize("field", fields(HistoryEvent), ids=lambda field: field.name)
def test_schema_types_hold_what_an_event_holds(field):
    assert SCHEMA[field.name].dataType.simpleString() in SPARK_TYPES[field.type]


def test_duplicates_of_an_event_are_removed_and_the_earliest_remains(spark, history, at):
    events = history(
        {"event_id": "a", "occurred_at": at("2026-11-21 10:00:05"), "outcome": "late"},
        {"event_id": "a", "occurred_at": at("2026-11-21 10:00:00"), "outcome": "first"},
        {"event_id": "a", "occurred_at": None, "outcome": "timeless"},
        {"event_id": "b", "occurred_at": at("2026-11-21 10:00:00"), "outcome": "other"},
    )

    kept = events.transform(deduplicated)

    expected = history(
        {"event_id": "a", "occurred_at": at("2026-11-21 10:00:00"), "outcome": "first"},
        {"event_id": "b", "occurred_at": at("2026-11-21 10:00:00"), "outcome": "other"},
    )
    assert_df_equality(kept.orderBy("event_id"), expected)


@pytest.mark.parametrize("turned", [False, True], ids=["one-order", "the-other"])
def test_of_different_duplicates_with_equal_time_the_same_row_remains_in_any_order(history, at, turned):
    same = {"event_id": "a", "occurred_at": at("2026-11-21 10:00:00"), "outcome": "idle"}
    rows = [same | {"labels": {"nat": "unknown"}}, same | {"labels": {"nat": "restricted", "held": "true"}}]

    kept = history(*(reversed(rows) if turned else rows)).transform(deduplicated)

    assert_df_equality(kept, history(same | {"labels": {"nat": "restricted", "held": "true"}}))


def test_rows_without_an_event_id_are_distinguished_by_all_fields(history, at):
    row = {"event_id": None, "occurred_at": at("2026-11-21 10:00:00"), "outcome": "idle"}

    kept = history(row, row, row | {"outcome": "matched"}).transform(deduplicated)

    assert sorted(row.outcome for row in kept.collect()) == ["idle", "matched"]
    assert kept.where("event_id is null").count() == 0


def test_an_event_belongs_to_the_utc_day_on_which_it_occurred(history, at):
    events = history(
        {"event_id": "before", "occurred_at": at("2026-11-20 23:59:59.999")},
        {"event_id": "first", "occurred_at": at("2026-11-21 00:00:00")},
        {"event_id": "last", "occurred_at": at("2026-11-22 23:59:59.999")},
        {"event_id": "after", "occurred_at": at("2026-11-23 00:00:00")},
        {"event_id": "never", "occurred_at": None},
    )

    kept = events.transform(within_days, date(2026, 11, 21), last=date(2026, 11, 22)).select("day", "event_id")

    assert kept.collect() == [
        Row(day=date(2026, 11, 21), event_id="first"),
        Row(day=date(2026, 11, 22), event_id="last"),
    ]


def test_an_inexact_half_is_rounded_as_a_half(spark):
    values = frame(spark, [(2.5,), (337.49999999999994,), (337.4,), (None,)], "value double")

    whole = [row.whole for row in values.select(rounded(values["value"]).alias("whole")).collect()]

    assert whole == [3, 338, 337, None]
