"""Glue job `compact_history`: deduplicates Firehose's raw events into the Iceberg table `events`.

Arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; no bookmarks):

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
occurred earlier are merged into their own days. Any other window is merged as a whole, as the hourly run does. The
result does not depend on the kind, order or number of runs: of the duplicates of an event, the first in the order of
`duplicate_order` remains.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from glue_jobs.shared.arguments import DAY, WINDOW_ARGUMENTS, TimeWindow, parse_arguments
from glue_jobs.shared.event_index import EventIndex, whole_hours_of_days
from glue_jobs.shared.lake import MAX_DUPLICATE_DELAY, Lake, read_raw, spark_session
from glue_jobs.shared.maintenance import delete_events, maintain
from glue_jobs.transforms.events import deduplicated
from glue_jobs.transforms.tables import EVENTS

REQUIRED = ("history_path", "database")
OPTIONAL = (*WINDOW_ARGUMENTS, "retention_days", "maintain", "raw_format", "index_path")


class RowCounts(NamedTuple):
    """The numbers of raw rows of a run: all, those that occurred before its window, and those without a time."""

    rows: int
    early: int
    timeless: int


def main(argv: Sequence[str]) -> None:
    """Compact the window of the arguments, and print the number of rows."""
    arguments = parse_arguments(argv, REQUIRED, optional=OPTIONAL)
    window = TimeWindow.parse(arguments)
    lake = Lake(spark_session("compact_history"), arguments["database"])
    lake.register_tables()
    raw = RawFiles(lake, arguments["history_path"], arguments.get("raw_format", "parquet"))
    index = EventIndex(lake, arguments["index_path"]) if "index_path" in arguments else None
    counts = _replace_days(raw, window, index) if window.is_whole_days else _merge(raw, window, index)
    print(
        f"compact_history: {counts.rows} rows read, {counts.early} of them occurred before the window;"
        f" {counts.timeless} without a time stay in the raw files"
    )
    if "retention_days" in arguments:
        oldest = window.end - DAY * int(arguments["retention_days"])
        delete_events(lake, before=oldest)
        if index:
            index.delete(before=oldest)
    if arguments.get("maintain", "yes") != "no":
        maintain(lake)


@dataclass(frozen=True, slots=True)
class RawFiles:
    """Firehose's raw files, and the lake that receives their events."""

    lake: Lake
    path: str
    file_format: str

    def arrived(self, window: TimeWindow) -> DataFrame:
        """Return the rows that arrived in the hours of the window."""
        return read_raw(self.lake.spark, self.path, window, file_format=self.file_format)


def _replace_days(raw: RawFiles, window: TimeWindow, index: EventIndex | None) -> RowCounts:
    read_at = datetime.now(UTC)
    # Firehose retries deliveries for up to a day; later arrivals are merged on the day of their arrival.
    arrived, counts = raw.arrived(window.widened(before=MAX_DUPLICATE_DELAY, after=DAY)), _counts(window)
    known = raw.lake.rows(EVENTS.name, window.widened(before=MAX_DUPLICATE_DELAY, after=MAX_DUPLICATE_DELAY))
    seen = Observation()
    events = arrived.observe(seen, *counts).unionByName(known).transform(deduplicated)
    raw.lake.replace(EVENTS.name, events, window)
    # An Observation has no result when Spark finds that there are no rows to write.
    counted = RowCounts(**(seen.get or arrived.agg(*counts).collect()[0].asDict()))
    if index:
        index.replace_days(window)
    if counted.early:
        is_late = F.col("occurred_at") < F.lit(window.start)
        late = raw.arrived(window).where(is_late).transform(deduplicated)
        raw.lake.merge_events(late)
        if index:
            index.add(late, window)
    if index:
        index.mark_read(whole_hours_of_days(window), read_at=read_at)
    return counted


def _merge(raw: RawFiles, window: TimeWindow, index: EventIndex | None) -> RowCounts:
    read_at = datetime.now(UTC)
    arrived = raw.arrived(window)
    events = arrived.where(F.col("occurred_at").isNotNull()).transform(deduplicated)
    raw.lake.merge_events(events)
    if index:
        index.add(events, window)
        index.mark_read(window, read_at=read_at)
    return RowCounts(**arrived.agg(*_counts(window)).collect()[0].asDict())


def _counts(window: TimeWindow) -> list[Column]:
    is_early = F.col("occurred_at") < F.lit(window.start)
    is_timeless = F.col("occurred_at").isNull()
    return [
        F.count("*").alias("rows"),
        F.count(F.when(is_early, 1)).alias("early"),
        F.count(F.when(is_timeless, 1)).alias("timeless"),
    ]


if __name__ == "__main__":
    main(sys.argv)
