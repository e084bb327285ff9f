"""Compaction: Firehose's raw events, deduplicated, into the Iceberg table `events`.

The jobs `compact_history` and `day` share it. Its arguments:

--history_path    the prefix of Firehose's files, without partitions: s3://<bucket>/raw
                  Hours are read by path: <history_path>/dt=YYYY-MM-DD/hour=HH/*
--database        the database of the tables: <stage>_lake
--day, --days, --from, --to, --hours
                  the window (glue_jobs/shared/arguments.py), such as --day 2026-11-20, or --to <time> --hours 2
--retention_days  delete events older than this number of days before the window's last day; default: none
--maintain        `no` skips the maintenance of the tables: file compaction, old snapshots, orphan files
--raw_format      `json` for raw files of JSON lines; default: parquet
--index_path      the prefix of the index of events by id: s3://<bucket>/index; default: no index is written

A window of whole days replaces these days in the table: with the raw events that arrived for them, and with the rows
that the table already has, so that no event is lost when raw files have expired. Events that arrived in these days and
occurred earlier or later are merged into their own days. Any other window is merged as a whole, as the hourly run does.
The result does not depend on the kind, order or number of runs, nor on runs at the same time: of the duplicates of an
event, the first in the order of `duplicate_order` remains.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple, Self

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from glue_jobs.shared.arguments import DAY, WINDOW_ARGUMENTS, TimeWindow
from glue_jobs.shared.commits import repeat_on_conflict
from glue_jobs.shared.event_index import EventIndex, whole_hours_of_days
from glue_jobs.shared.lake import MAX_DUPLICATE_DELAY, Lake, damaged_raw_files, read_raw
from glue_jobs.shared.maintenance import delete_events, maintain
from glue_jobs.transforms.events import deduplicated
from glue_jobs.transforms.tables import EVENTS

REQUIRED = ("history_path", "database")
OPTIONAL = (*WINDOW_ARGUMENTS, "retention_days", "maintain", "raw_format", "index_path")
MAX_REPEATED_IDS = 5_000_000  # 8 bytes each in every process


class RowCounts(NamedTuple):
    """The numbers of raw rows of a run: all, those that occurred outside its window, and those without a time."""

    rows: int
    outside: int
    timeless: int

    def __str__(self) -> str:
        """Return the numbers as a sentence."""
        return (
            f"{self.rows} rows read, {self.outside} of them occurred outside the window;"
            f" {self.timeless} without a time stay in the raw files"
        )


@dataclass(frozen=True, slots=True)
class RawFiles:
    """Firehose's raw files, and the lake and the index that receive their events."""

    lake: Lake
    path: str
    file_format: str
    index: EventIndex | None
    skip_damaged: bool = False

    @classmethod
    def of(cls, lake: Lake, arguments: Mapping[str, str]) -> Self:
        """Return the raw files of a job's arguments."""
        index = _index(lake, arguments)
        return cls(lake, arguments["history_path"], arguments.get("raw_format", "parquet"), index)

    def arrived(self, window: TimeWindow) -> DataFrame:
        """Return the rows that arrived in the hours of the window."""
        return read_raw(
            self.lake.spark, self.path, window, file_format=self.file_format, skip_damaged=self.skip_damaged
        )

    def damaged(self, window: TimeWindow) -> list[str]:
        """Return the files that arrived in the hours of the window and cannot be read."""
        return damaged_raw_files(self.lake.spark, self.path, window, file_format=self.file_format)


def compact(raw: RawFiles, window: TimeWindow) -> RowCounts:
    """Write the events of a window to the table and the index: replace whole days, merge any other window.

    Files that cannot be read are left out, and their names are printed.
    """
    write = _replace_days if window.is_whole_days else _merge
    try:
        return write(raw, window)
    except Py4JJavaError:
        damaged = raw.damaged(_read_hours(window))
        if not damaged:
            raise
        print(f"compact_history: {len(damaged)} raw files cannot be read and are left out: {', '.join(damaged)}")
        return write(replace(raw, skip_damaged=True), window)


def clean_up(lake: Lake, arguments: Mapping[str, str], window: TimeWindow) -> None:
    """Delete events beyond the retention, and maintain the tables, as the arguments say."""
    if "retention_days" in arguments:
        oldest = window.end - DAY * int(arguments["retention_days"])
        delete_events(lake, before=oldest)
        if index := _index(lake, arguments):
            index.delete(before=oldest)
    if arguments.get("maintain", "yes") != "no":
        maintain(lake)


def _index(lake: Lake, arguments: Mapping[str, str]) -> EventIndex | None:
    return EventIndex(lake, arguments["index_path"]) if "index_path" in arguments else None


def _replace_days(raw: RawFiles, window: TimeWindow) -> RowCounts:
    read_at = datetime.now(UTC)
    # Without the rows of another run that commits at the same time, these days would lose them.
    counted = repeat_on_conflict(lambda: _replace_in_table(raw, window))
    if raw.index:
        raw.index.replace_days(window)
    if counted.outside:
        others = raw.arrived(window).where(_is_outside(window)).transform(deduplicated)
        raw.lake.merge_events(others)
        if raw.index:
            raw.index.add(others, window)
    if raw.index:
        raw.index.mark_read(whole_hours_of_days(window), read_at=read_at)
    return counted


def _replace_in_table(raw: RawFiles, window: TimeWindow) -> RowCounts:
    since = raw.lake.snapshot(EVENTS.name)
    arrived, counts = raw.arrived(_read_hours(window)), _counts(window)
    known = raw.lake.rows(EVENTS.name, window.widened(before=MAX_DUPLICATE_DELAY, after=MAX_DUPLICATE_DELAY))
    seen = Observation()
    observed = arrived.observe(seen, *counts)
    # Raw files are read three times to move few rows, which JSON is too slow for.
    is_first = raw.file_format != "json" and (since == 0 or known.select("event_id").isEmpty())
    repeated = _repeated_ids(observed) if is_first else None
    if repeated is None:
        read = arrived if is_first else observed
        events = read.unionByName(known, allowMissingColumns=True).transform(deduplicated)
    else:
        events = _without_repetitions(arrived, repeated)
    raw.lake.replace(EVENTS.name, events, window, since=since)
    # An Observation has no result when Spark finds that there are no rows to write.
    return RowCounts(**(seen.get or arrived.agg(*counts).collect()[0].asDict()))


def _read_hours(window: TimeWindow) -> TimeWindow:
    """Return the hours whose raw files a run of a window reads."""
    if not window.is_whole_days:
        return window
    # Firehose retries deliveries for up to a day; later arrivals are merged on the day of their arrival.
    return window.widened(before=MAX_DUPLICATE_DELAY, after=DAY)


def _repeated_ids(arrived: DataFrame) -> DataFrame | None:
    """Return hashes of the ids of duplicates, and of the absent id; None if they are too many for every task."""
    hashed = arrived.select(F.xxhash64("event_id").alias("id")).groupBy("id").agg(F.count("*").alias("rows"))
    repeated = hashed.where(F.col("rows") > 1).select("id").persist()
    if repeated.count() > MAX_REPEATED_IDS:
        repeated.unpersist()
        return None
    absent = arrived.sparkSession.range(1).select(F.xxhash64(F.lit(None).cast("string")).alias("id"))
    return repeated.unionByName(absent)


def _without_repetitions(arrived: DataFrame, repeated: DataFrame) -> DataFrame:
    """Deduplicate only the rows whose ids have these hashes: all others stay in their task, without a shuffle."""
    hashed, few = arrived.withColumn("id", F.xxhash64("event_id")), F.broadcast(repeated)
    alone = hashed.join(few, on="id", how="left_anti").select(*arrived.columns)
    several = hashed.join(few, on="id", how="left_semi").select(*arrived.columns)
    return alone.unionByName(several.transform(deduplicated))


def _merge(raw: RawFiles, window: TimeWindow) -> RowCounts:
    read_at = datetime.now(UTC)
    arrived = raw.arrived(window)
    events = arrived.where(F.col("occurred_at").isNotNull()).transform(deduplicated)
    raw.lake.merge_events(events)
    if raw.index:
        raw.index.add(events, window)
        raw.index.mark_read(window, read_at=read_at)
    return RowCounts(**arrived.agg(*_counts(window)).collect()[0].asDict())


def _is_outside(window: TimeWindow) -> Column:
    return (F.col("occurred_at") < F.lit(window.start)) | (F.col("occurred_at") >= F.lit(window.end))


def _counts(window: TimeWindow) -> list[Column]:
    is_timeless = F.col("occurred_at").isNull()
    return [
        F.count("*").alias("rows"),
        F.count(F.when(_is_outside(window), 1)).alias("outside"),
        F.count(F.when(is_timeless, 1)).alias("timeless"),
    ]
