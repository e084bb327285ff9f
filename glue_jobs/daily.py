"""What jobs that report days share: their command line, the hours of history that they read, and where they write."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from glue_jobs.files import existing, write_text
from glue_jobs.transforms.history import SCHEMA

REQUIRED = ("history_path", "report_path", "day")
OPTIONAL = ("days",)


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


def session(name: str) -> SparkSession:
    """Return the Spark session of a job, which counts days in UTC."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


def events(spark: SparkSession, arguments: Arguments) -> DataFrame:
    """Return the raw history in which the events of the days are, among others."""
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


def days(spark: SparkSession, arguments: Arguments) -> DataFrame:
    """Return the days as a frame."""
    return spark.createDataFrame([(day,) for day in arguments.days], "day date")


def write(spark: SparkSession, report_path: str, *, day: date, table: DataFrame, text: str) -> None:
    """Put the report of a day in the place of an older one: a table and a text."""
    # The day's own path, not a dynamic partition overwrite: not every S3 committer offers that one.
    table.coalesce(1).write.mode("overwrite").parquet(f"{report_path}/table/day={day}")
    write_text(spark, f"{report_path}/text/day={day}.txt", text=text)
