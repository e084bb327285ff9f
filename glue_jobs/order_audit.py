"""Glue job `order_audit`: gaps, duplicates and reordered messages of each queue, in the table `order_audit`.

glue_jobs/shared/report_run.py describes the arguments and files, which all reports share. Each queue's last number
before the window is in the table, from earlier audits. Days without an audit since the last one are audited too, so
that their messages do not count as missing. After a correction of an older day, audit it and all later days.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from glue_jobs.pictures.order import order_picture
from glue_jobs.shared.arguments import TimeWindow
from glue_jobs.shared.report_run import ReportRun, report_rows, rows_of_day
from glue_jobs.texts.order_text import order_text
from glue_jobs.transforms.order import AUDITED, FINDINGS, facts_by_topic, last_positions, order_audit, order_facts
from glue_jobs.transforms.tables import ORDER_AUDIT

MAX_TEXT_FINDINGS = 1_000  # findings of a run in texts; the table has all of them
ORDER = ("day", "finding", "exchange", "topic", "queue", "first_sequence")


def main(argv: Sequence[str]) -> None:
    """Audit the days of the arguments' window."""
    write_report(ReportRun.start("order_audit", argv))


def write_report(run: ReportRun) -> None:
    """Audit the days of the run's window."""
    # All facts of a topic are in one partition, so joins within a topic need no further shuffle.
    run.spark.conf.set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    run.lake.ensure(ORDER_AUDIT.name)
    before = run.spark.table(run.lake.name(ORDER_AUDIT.name)).where(F.col("day") < run.first)
    run = _with_unaudited_days(run, before)
    facts = run.events().transform(order_facts, run.first, last=run.last)
    # Without the checkpoint, writing to the table would make Spark recompute everything that depends on it.
    known = last_positions(before.where(F.col("day") < run.first)).localCheckpoint()
    facts_with_positions = facts_by_topic(facts, known).persist()
    audit = order_audit(facts_with_positions, run.days()).persist()
    run.lake.replace(ORDER_AUDIT.name, audit, run.window)
    _publish(run, audit)
    audit.unpersist()
    facts_with_positions.unpersist()


def _with_unaudited_days(run: ReportRun, before: DataFrame) -> ReportRun:
    row = before.where(F.col("finding") == AUDITED).agg(F.max("day").alias("day")).first()
    last: date | None = row["day"] if row else None
    if last is None:
        return run
    missing = run.first - last - timedelta(days=1)
    return replace(run, window=TimeWindow(run.window.start - missing, run.window.end))


def _publish(run: ReportRun, audit: DataFrame) -> None:
    counts = report_rows(
        audit.groupBy("day", "finding").agg(F.count("*").alias("rows"), F.sum("number").alias("number")),
        *("day", "finding"),
    )
    found = audit.where(F.col("finding").isin(*FINDINGS)).orderBy(*ORDER).limit(MAX_TEXT_FINDINGS)
    rows = report_rows(found, *ORDER)
    for day in run.window.days:
        own, numbers = rows_of_day(rows, day), rows_of_day(counts, day)
        text, picture = order_text(day, own, counts=numbers), order_picture(day, own, counts=numbers)
        run.publish(day, text=text, picture=picture, rows=[*numbers, *own])


if __name__ == "__main__":
    main(sys.argv)
