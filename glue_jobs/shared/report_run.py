"""A run of a report job: its arguments, its events and the files that it writes.

Arguments of each report (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings):

--database      the database of the tables: <stage>_lake
--report_path   the prefix of the report's files: s3://<bucket>/reports/<name>
                <report_path>/text/day=YYYY-MM-DD.txt      the report as text
                <report_path>/picture/day=YYYY-MM-DD.svg   the report as a picture
                <report_path>/json/day=YYYY-MM-DD.json     the report's rows
--day, --days, --from, --to, --hours
                the window (glue_jobs/shared/arguments.py); a report covers all days that it overlaps

A run replaces the reports of its days, so a day can be reported again, after late events or a correction. A day
without events also has a report.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from glue_jobs.shared.arguments import WINDOW_ARGUMENTS, TimeWindow, parse_arguments
from glue_jobs.shared.files import write_text
from glue_jobs.shared.lake import Lake, spark_session
from glue_jobs.texts.report_text import ReportRow

REQUIRED = ("database", "report_path")
TIME_FORMAT = "yyyy-MM-dd HH:mm:ss.SSS"


@dataclass(frozen=True, slots=True)
class ReportRun:
    """A run of a report job for a window of whole days."""

    name: str
    lake: Lake
    window: TimeWindow
    report_path: str

    @classmethod
    def start(cls, name: str, argv: Sequence[str]) -> "ReportRun":
        """Parse the arguments and start Spark. Raises `ValueError` for an invalid window."""
        arguments = parse_arguments(argv, REQUIRED, optional=WINDOW_ARGUMENTS)
        window = TimeWindow.parse(arguments).whole_days()
        return cls(name, Lake(spark_session(name), arguments["database"]), window, arguments["report_path"].rstrip("/"))

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""
        return self.lake.spark

    @property
    def first(self) -> date:
        """The first day."""
        return self.window.days[0]

    @property
    def last(self) -> date:
        """The last day, inclusive."""
        return self.window.days[-1]

    def events(self) -> DataFrame:
        """Return the deduplicated events of the days."""
        return self.lake.events(self.window)

    def days(self) -> DataFrame:
        """Return a frame with the column `day`."""
        days = F.sequence(F.lit(self.first), F.lit(self.last))
        return self.spark.range(1).select(F.explode(days).alias("day"))

    def publish(self, day: date, *, text: str, picture: str, rows: Sequence[ReportRow]) -> None:
        """Write a day's text, picture and JSON, replacing earlier ones."""
        document = {"report": self.name, "day": f"{day}", "rows": rows}
        contents = {"text": ("txt", text), "picture": ("svg", picture), "json": ("json", f"{_json(document)}\n")}
        for folder, (ending, content) in contents.items():
            write_text(self.spark, f"{self.report_path}/{folder}/day={day}.{ending}", text=content)


def report_rows(frame: DataFrame, *order: str) -> list[ReportRow]:
    """Collect the rows of a small frame, sorted by `order` with nulls first; times are text in UTC.

    Spark would collect times in the machine's time zone, without a zone. To sort, it would compute the frame twice:
    once for the bounds of the tasks.
    """
    columns = [
        F.date_format(column.name, TIME_FORMAT).alias(column.name)
        if isinstance(column.dataType, TimestampType)
        else F.col(column.name)
        for column in frame.schema
    ]
    rows = [row.asDict() for row in frame.select(columns).collect()]
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in order])


def rows_of_day(rows: Sequence[ReportRow], day: date) -> list[ReportRow]:
    """Return the rows of one day."""
    return [row for row in rows if row["day"] == day]


def _json(document: object) -> str:
    return json.dumps(document, default=str, ensure_ascii=False, indent=1)
