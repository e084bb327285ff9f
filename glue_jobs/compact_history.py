"""Glue job: raw history, as Firehose wrote it, into the Iceberg table `events`, each event once.

Arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; bookmarks are not used):

--history_path    where Firehose writes, without the partitions: s3://<bucket>/raw
                  Hours are read by path: <history_path>/dt=YYYY-MM-DD/hour=HH/*
--database        the database of the tables: <stage>_history
--day, --days, --from, --to, --hours
                  the window (glue_jobs/shared/arguments.py), such as --day 2026-11-20, or --to <moment> --hours 2
--retention_days  delete events that occurred so many days before the window's last day; without it, none
--maintain        `no` leaves out what keeps the tables small and quick: compaction, old snapshots, orphan files
--raw_format      `json` for raw files of JSON lines (default parquet)

A window of whole days puts them in the place of what the table has of these days: all that arrived in time for them,
and what the table knew already, so that nothing is lost when raw files have expired. What arrived in these days and
occurred before them is merged into the days of its own. Any other window is merged as a whole: that is what a run
every hour does. The result is the same whichever way, in whichever order and however often windows are compacted:
of the copies of an event, the one stays that sorts first.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from glue_jobs.shared.arguments import DAY, WINDOW, Window, resolved
from glue_jobs.shared.lake import COPIES_APART, Lake, read_raw, session
from glue_jobs.shared.maintenance import forget, maintain
from glue_jobs.transforms.events import without_copies
from glue_jobs.transforms.tables import EVENTS

REQUIRED = ("history_path", "database")
OPTIONAL = (*WINDOW, "retention_days", "maintain", "raw_format")


class Counts(NamedTuple):
    """What a run found in raw files: how many rows, from before its window, and without a time."""

    rows: int
    early: int
    timeless: int


def main(argv: Sequence[str]) -> None:
    """Compact the window that the arguments name, and print what was found."""
    given = resolved(argv, REQUIRED, optional=OPTIONAL)
    window = Window.parse(given)
    lake = Lake(session("compact_history"), given["database"])
    raw = Raw(lake, given["history_path"], given.get("raw_format", "parquet"))
    counts = _replace_days(raw, window) if window.is_whole_days else _merge(raw, window)
    print(
        f"compact_history: {counts.rows} rows read, {counts.early} of them from before the window;"
        f" {counts.timeless} without a time, which stay in the raw files"
    )
    if "retention_days" in given:
        forget(lake, before=window.end - DAY * int(given["retention_days"]))
    if given.get("maintain", "yes") != "no":
        maintain(lake)


@dataclass(frozen=True, slots=True)
class Raw:
    """The raw files, and the lake that they go to."""

    lake: Lake
    path: str
    file_format: str

    def arrived(self, window: Window) -> DataFrame:
        """Return what arrived in the hours of the window."""
        return read_raw(self.lake.spark, self.path, window, file_format=self.file_format)


def _replace_days(raw: Raw, window: Window) -> Counts:
    # Firehose delivers late by up to a day, then gives up; what comes later yet is merged on the day of its arrival.
    arrived, counts = raw.arrived(window.widened(before=COPIES_APART, after=DAY)), _counts(window)
    known = raw.lake.rows(EVENTS.name, window.widened(before=COPIES_APART, after=COPIES_APART))
    seen = Observation()
    events = arrived.observe(seen, *counts).unionByName(known).transform(without_copies)
    raw.lake.replace(EVENTS.name, events, window)
    # Spark forgets what it has observed when it finds out that nothing is left to write.
    counted = Counts(**(seen.get or arrived.agg(*counts).collect()[0].asDict()))
    if counted.early:
        is_late = F.col("occurred_at") < F.lit(window.start)
        raw.lake.merge_late(raw.arrived(window).where(is_late).transform(without_copies))
    return counted


def _merge(raw: Raw, window: Window) -> Counts:
    arrived = raw.arrived(window)
    raw.lake.merge_late(arrived.where(F.col("occurred_at").isNotNull()).transform(without_copies))
    return Counts(**arrived.agg(*_counts(window)).collect()[0].asDict())


def _counts(window: Window) -> list[Column]:
    is_early = F.col("occurred_at") < F.lit(window.start)
    is_timeless = F.col("occurred_at").isNull()
    return [
        F.count("*").alias("rows"),
        F.count(F.when(is_early, 1)).alias("early"),
        F.count(F.when(is_timeless, 1)).alias("timeless"),
    ]


if __name__ == "__main__":
    main(sys.argv)
