"""What jobs that report days share: their command line, their events, and where they write.

Arguments of each (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; no bookmarks):

--database      the database of the tables: <stage>_history
--report_path   where the report goes: s3://<bucket>/reports/<name>
                <report_path>/text/day=YYYY-MM-DD.txt      for people
                <report_path>/picture/day=YYYY-MM-DD.svg   the same to look at
                <report_path>/json/day=YYYY-MM-DD.json     the same for programs
--day, --days, --from, --to, --hours
                the window, as glue_jobs/shared/arguments.py tells; a report covers all days that it touches

A run replaces the reports of its days, so any day can be run again: after late events, after a correction. A day
without events has a report too.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from glue_jobs.shared.arguments import WINDOW, Window, resolved
from glue_jobs.shared.files import write_text
from glue_jobs.shared.lake import Lake, session
from glue_jobs.texts.report_text import Record

REQUIRED = ("database", "report_path")
MOMENT = "yyyy-MM-dd HH:mm:ss.SSS"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a report: its lake, its window of whole days, and where it writes."""

    name: str
    lake: Lake
    window: Window
    report_path: str

    @classmethod
    def begin(cls, name: str, argv: Sequence[str]) -> "Run":
        """Read the command line and start Spark. Raises `ValueError` for a window that is none."""
        given = resolved(argv, REQUIRED, optional=WINDOW)
        window = Window.parse(given).whole_days()
        return cls(name, Lake(session(name), given["database"]), window, given["report_path"].rstrip("/"))

    @property
    def spark(self) -> SparkSession:
        """Return Spark's session."""
        return self.lake.spark

    @property
    def first(self) -> date:
        """Return the first day."""
        return self.window.days[0]

    @property
    def last(self) -> date:
        """Return the last day, which is reported too."""
        return self.window.days[-1]

    def events(self) -> DataFrame:
        """Return the events of the days, each once."""
        return self.lake.events(self.window)

    def days(self) -> DataFrame:
        """Return the days as a frame."""
        days = F.sequence(F.lit(self.first), F.lit(self.last))
        return self.spark.range(1).select(F.explode(days).alias("day"))

    def publish(self, day: date, *, text: str, picture: str, rows: Sequence[Record]) -> None:
        """Put a day's text, picture and JSON in the place of older ones."""
        document = {"report": self.name, "day": f"{day}", "rows": rows}
        contents = {"text": ("txt", text), "picture": ("svg", picture), "json": ("json", f"{_json(document)}\n")}
        for folder, (ending, content) in contents.items():
            write_text(self.spark, f"{self.report_path}/{folder}/day={day}.{ending}", text=content)


def records(frame: DataFrame, *order: str) -> list[Record]:
    """Return the rows of a small frame in an order, nulls first; times as text in UTC.

    Spark hands times over in the time zone of the machine, without saying so.
    """
    columns = [
        F.date_format(column.name, MOMENT).alias(column.name)
        if isinstance(column.dataType, TimestampType)
        else F.col(column.name)
        for column in frame.schema
    ]
    return [row.asDict() for row in frame.select(columns).orderBy(*order).collect()]


def of_day(rows: Sequence[Record], day: date) -> list[Record]:
    """Return the rows of a day."""
    return [row for row in rows if row["day"] == day]


def _json(document: object) -> str:
    return json.dumps(document, default=str, ensure_ascii=False, indent=1)
