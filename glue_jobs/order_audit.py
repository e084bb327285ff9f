"""Glue job: whether each queue got the numbered messages of a topic, all, once, in order; into `order_audit`.

The arguments and files are those of all reports: see glue_jobs/shared/report_run.py. Where each queue stood before
the days is in the table, from earlier audits; days that were left out since the last audit are audited too, so that
what came in them is not taken for missing. After a correction of an older day, audit it and all days after it.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from glue_jobs.pictures.order import order_picture
from glue_jobs.shared.arguments import Window
from glue_jobs.shared.report_run import Run, of_day, records
from glue_jobs.texts.order_text import order_text
from glue_jobs.transforms.order import AUDITED, FINDINGS, heads, order_audit, order_facts, together
from glue_jobs.transforms.tables import ORDER_AUDIT

FOUND = 1_000  # so many findings of a run are told in texts; the table has all
ORDER = ("day", "finding", "exchange", "topic", "queue", "first_sequence")


def main(argv: Sequence[str]) -> None:
    """Audit the days that the arguments name."""
    run = Run.begin("order_audit", argv)
    # All facts of a topic are in one place: what is joined within a topic need not be shuffled for it again.
    run.spark.conf.set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    run.lake.ensure(ORDER_AUDIT.name)
    before = run.spark.table(run.lake.name(ORDER_AUDIT.name)).where(F.col("day") < run.first)
    run = _with_days_left_out(run, before)
    facts = run.events().transform(order_facts, run.first, last=run.last)
    # Cut off from its table: writing to that would make Spark compute again all that depends on it.
    known = heads(before.where(F.col("day") < run.first)).localCheckpoint()
    looked_at = together(facts, known).persist()
    audit = order_audit(looked_at, run.days()).persist()
    run.lake.replace(ORDER_AUDIT.name, audit, run.window)
    _publish(run, audit)
    audit.unpersist()
    looked_at.unpersist()


def _with_days_left_out(run: Run, before: DataFrame) -> Run:
    row = before.where(F.col("finding") == AUDITED).agg(F.max("day").alias("day")).first()
    last: date | None = row["day"] if row else None
    if last is None:
        return run
    missing = run.first - last - timedelta(days=1)
    return replace(run, window=Window(run.window.start - missing, run.window.end))


def _publish(run: Run, audit: DataFrame) -> None:
    counts = records(
        audit.groupBy("day", "finding").agg(F.count("*").alias("rows"), F.sum("number").alias("number")),
        *("day", "finding"),
    )
    found = audit.where(F.col("finding").isin(*FINDINGS)).orderBy(*ORDER).limit(FOUND)
    rows = records(found, *ORDER)
    for day in run.window.days:
        own, numbers = of_day(rows, day), of_day(counts, day)
        text, picture = order_text(day, own, counts=numbers), order_picture(day, own, counts=numbers)
        run.publish(day, text=text, picture=picture, rows=[*numbers, *own])


if __name__ == "__main__":
    main(sys.argv)
