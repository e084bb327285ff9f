"""Glue job `order_audit`: gaps, duplicates and reordered messages of each queue, in the table `order_audit`.

glue_jobs/shared/report_run.py describes the arguments and files, which all reports share. Each queue's last number
before the window is in the table, from earlier audits. Days without an audit since the last one are audited too, so
that their messages do not count as missing. After a correction of an older day, audit it and all later days.

A day before the window whose audit has begun twice and never ended is left out, with all unaudited days before it, so
that a day with more messages than a run has time for does not end all later audits. The audit then begins anew: numbers
before these days have no gap. A run of a window that has the day audits it.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from glue_jobs.pictures.order import order_picture
from glue_jobs.shared.arguments import DAY, TimeWindow
from glue_jobs.shared.report_run import ReportRun, report_rows, rows_of_day
from glue_jobs.texts.order_text import order_text
from glue_jobs.transforms.order import (
    AUDITED,
    BEGUN,
    FINDINGS,
    LEFT_OUT,
    day_rows,
    facts_by_queue,
    last_positions,
    order_audit,
    order_facts,
)
from glue_jobs.transforms.tables import ORDER_AUDIT

ATTEMPTS = 2
# The numbers of a topic begin anew after a pause of twice the longest retention and a day.
POSITIONS_KEPT = timedelta(days=30)
MAX_TEXT_FINDINGS = 1_000  # findings of a run in texts; the table has all of them
ORDER = ("day", "finding", "exchange", "topic", "queue", "first_sequence")


def main(argv: Sequence[str]) -> None:
    """Audit the days of the arguments' window."""
    write_report(ReportRun.start("order_audit", argv))


def write_report(run: ReportRun) -> None:
    """Audit the days of the run's window."""
    # All facts of a topic and queue are in one partition, so joins within them need no further shuffle.
    run.spark.conf.set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    run.lake.ensure(ORDER_AUDIT.name)
    before = run.spark.table(run.lake.name(ORDER_AUDIT.name)).where(F.col("day") < run.first)
    state = AuditState.of(before)
    run, audited = _reaching(run, back_to=state.done), _reaching(run, back_to=state.failed)
    left_out = run.days().where(F.col("day") < audited.first)
    run.lake.append(ORDER_AUDIT.name, day_rows(audited.days(), BEGUN, F.lit(1)))
    facts = audited.events().transform(order_facts, audited.first, last=audited.last)
    since = max(audited.first - POSITIONS_KEPT, state.left_out or date.min)
    earlier = before.where(F.col("day").between(since, audited.first - DAY))
    # Without the checkpoint, writing to the table would make Spark recompute everything that depends on it.
    known = last_positions(earlier).localCheckpoint()
    facts_with_positions = facts_by_queue(facts, known).persist()
    found = order_audit(facts_with_positions, audited.days())
    audit = found.unionByName(day_rows(left_out, LEFT_OUT, F.lit(None))).persist()
    run.lake.replace(ORDER_AUDIT.name, audit, run.window)
    _publish(run, audit)
    audit.unpersist()
    facts_with_positions.unpersist()


class AuditState(NamedTuple):
    """The last audited day, the last one that was audited or failed, and the last one to leave out; None for none."""

    done: date | None
    failed: date | None
    left_out: date | None

    @classmethod
    def of(cls, before: DataFrame) -> Self:
        """Return the state of the days in an audit."""
        rows = before.where(F.col("finding").isin(AUDITED, LEFT_OUT, BEGUN)).groupBy("finding", "day").count().collect()
        done = max((row["day"] for row in rows if row["finding"] != BEGUN), default=None)
        if done is None:
            return cls(None, None, None)
        begun = (row["day"] for row in rows if row["finding"] == BEGUN and row["count"] >= ATTEMPTS)
        failed = max((day for day in begun if day > done), default=done)
        left_out = (row["day"] for row in rows if row["finding"] == LEFT_OUT)
        return cls(done, failed, failed if failed > done else max(left_out, default=None))


def _reaching(run: ReportRun, *, back_to: date | None) -> ReportRun:
    if back_to is None:
        return run
    missing = run.first - back_to - DAY
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
