"""Glue job: the 24-hour rendezvous statistics of upstream's broker, for any days, from the raw history.

Arguments (Glue 5.1 or later; the session's catalog and bookmarks are not used):

--history_path  where Firehose writes, without the partitions: s3://<bucket>/raw
                Hours are read by path: <history_path>/dt=YYYY-MM-DD/hour=HH/*.parquet
--report_path   where the report goes: s3://<bucket>/reports/rendezvous
                <report_path>/table/day=YYYY-MM-DD/  Parquet: metric, label, exact, shown
                <report_path>/text/day=YYYY-MM-DD.txt  the block of upstream's metrics log
--day           the last day to report, YYYY-MM-DD in UTC; or a moment in ISO 8601, as EventBridge Scheduler puts it
                for <aws.scheduler.scheduled-time>, which means the day before that moment's
--days          how many days to report, ending with --day (default 1)

A run replaces the reports of its days, so any day can be run again: after late data, after a correction. A day
without events has a report of zeros.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from pyspark.sql import DataFrame, Row, SparkSession

from glue_jobs.files import existing, write_text
from glue_jobs.transforms.history import SCHEMA
from glue_jobs.transforms.log_block import log_block
from glue_jobs.transforms.rendezvous import rendezvous_facts, rendezvous_report

REQUIRED = ("history_path", "report_path", "day")
OPTIONAL = ("days",)
TABLE_SCHEMA = "metric string, label string, exact bigint, shown bigint"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What one run reads, writes and covers."""

    history_path: str
    report_path: str
    days: tuple[date, ...]

    @classmethod
    def parse(cls, argv: Sequence[str]) -> "Arguments":
        """Read Glue's command line, in which Glue's own arguments stand too."""
        given = _resolved(argv)
        return cls(
            history_path=given["history_path"].rstrip("/"),
            report_path=given["report_path"].rstrip("/"),
            days=_days(_last_day(given["day"]), int(given.get("days") or 1)),
        )


def _resolved(argv: Sequence[str]) -> dict[str, str]:
    present = [name for name in OPTIONAL if any(word.split("=")[0] == f"--{name}" for word in argv)]
    try:
        from awsglue.utils import getResolvedOptions  # noqa: PLC0415 - only Glue has it
    except ImportError:
        return _parsed(argv)
    return dict(getResolvedOptions(list(argv), [*REQUIRED, *present]))


def _parsed(argv: Sequence[str]) -> dict[str, str]:
    # Without abbreviations, as Glue 6.0 reads them: --day must not be taken for the start of --days.
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in REQUIRED:
        parser.add_argument(f"--{name}", required=True)
    for name in OPTIONAL:
        parser.add_argument(f"--{name}")
    known, _others = parser.parse_known_args(argv[1:])
    return vars(known)


def _last_day(text: str) -> date:
    if len(text) == len("YYYY-MM-DD"):
        return date.fromisoformat(text)
    moment = datetime.fromisoformat(text)
    in_utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return in_utc.date() - timedelta(days=1)


def _days(last: date, count: int) -> tuple[date, ...]:
    if count < 1:
        raise ValueError(f"--days is {count}; it must be at least 1")
    return tuple(last - timedelta(days=back) for back in reversed(range(count)))


def main(argv: Sequence[str]) -> None:
    """Report the days that the arguments name."""
    arguments = Arguments.parse(argv)
    spark = SparkSession.builder.appName("rendezvous_report").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for day, rows in groupby(_report(spark, arguments), key=lambda row: row.day):
        _write(spark, arguments.report_path, day=day, rows=list(rows))


def _report(spark: SparkSession, arguments: Arguments) -> list[Row]:
    """Compute the report of all days at once: some hundred rows a day, so the driver can hold them."""
    first, last = arguments.days[0], arguments.days[-1]
    facts = _events(spark, arguments).transform(rendezvous_facts, first, last=last).persist()
    days = spark.createDataFrame([(day,) for day in arguments.days], "day date")
    rows = rendezvous_report(facts, days).orderBy("day", "metric", "label").collect()
    facts.unpersist()
    return rows


def _events(spark: SparkSession, arguments: Arguments) -> DataFrame:
    hours = [path for pattern in _hours(arguments) for path in existing(spark, pattern)]
    if not hours:
        return spark.createDataFrame([], SCHEMA)
    return spark.read.schema(SCHEMA).parquet(*hours)


def _hours(arguments: Arguments) -> Iterator[str]:
    """Return patterns of the hours that can hold an event of the days, or an earlier copy of one.

    Files are sorted by arrival. Firehose delivers late by up to 24 hours, then gives up; a retry that crosses
    midnight writes the copy of an event that the last hour before already holds.
    """
    first, last = arguments.days[0], arguments.days[-1]
    yield f"{arguments.history_path}/dt={first - timedelta(days=1)}/hour=23"
    for day in (*arguments.days, last + timedelta(days=1)):
        yield f"{arguments.history_path}/dt={day}/hour=*"


def _write(spark: SparkSession, report_path: str, *, day: date, rows: Sequence[Row]) -> None:
    table = spark.createDataFrame([(row.metric, row.label, row.exact, row.shown) for row in rows], TABLE_SCHEMA)
    # The day's own path, not a dynamic partition overwrite: not every S3 committer offers that one.
    table.coalesce(1).write.mode("overwrite").parquet(f"{report_path}/table/day={day}")
    shown = {(row.metric, row.label): row.shown for row in rows}
    write_text(spark, f"{report_path}/text/day={day}.txt", text=log_block(day, shown))


if __name__ == "__main__":
    main(sys.argv)
