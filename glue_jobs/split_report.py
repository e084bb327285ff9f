"""Glue job: what splitting did in a day, for any days, from the raw history.

Arguments (Glue 5.1 or later; the session's catalog and bookmarks are not used):

--history_path  where Firehose writes, without the partitions: s3://<bucket>/raw
                Hours are read by path: <history_path>/dt=YYYY-MM-DD/hour=HH/*.parquet
--report_path   where the report goes: s3://<bucket>/reports/splitting
                <report_path>/table/day=YYYY-MM-DD/  Parquet: metric, queue, session, label, value
                <report_path>/text/day=YYYY-MM-DD.txt  the same for people
--day           the last day to report, YYYY-MM-DD in UTC; or a moment in ISO 8601, as EventBridge Scheduler puts it
                for <aws.scheduler.scheduled-time>, which means the day before that moment's
--days          how many days to report, ending with --day (default 1)

A run replaces the reports of its days, so any day can be run again: after late data, after a correction. A day
without events has a report of zeros.
"""

import sys
from collections.abc import Sequence
from datetime import date
from itertools import groupby

from pyspark.sql import Row, SparkSession

from glue_jobs import daily
from glue_jobs.transforms.split_text import Line, split_text
from glue_jobs.transforms.splitting import splitting_facts, splitting_report

TABLE_SCHEMA = "metric string, queue string, session string, label string, value bigint"
ORDER = ("day", "metric", "queue", "session", "label")


def main(argv: Sequence[str]) -> None:
    """Report the days that the arguments name."""
    arguments = daily.Arguments.parse(argv)
    spark = daily.session("split_report")
    for day, rows in groupby(_report(spark, arguments), key=lambda row: row.day):
        _write(spark, arguments.report_path, day=day, rows=list(rows))


def _report(spark: SparkSession, arguments: daily.Arguments) -> list[Row]:
    """Compute the report of all days at once: a row for each session and queue, so the driver can hold them."""
    first, last = arguments.days[0], arguments.days[-1]
    facts = daily.events(spark, arguments).transform(splitting_facts, first, last=last).persist()
    rows = splitting_report(facts, daily.days(spark, arguments)).orderBy(*ORDER).collect()
    facts.unpersist()
    return rows


def _write(spark: SparkSession, report_path: str, *, day: date, rows: Sequence[Row]) -> None:
    lines = [Line(row.metric, row.queue, row.session, row.label, row.value) for row in rows]
    table = spark.createDataFrame(lines, TABLE_SCHEMA)
    daily.write(spark, report_path, day=day, table=table, text=split_text(day, lines))


if __name__ == "__main__":
    main(sys.argv)
