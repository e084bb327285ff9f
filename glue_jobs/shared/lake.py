"""The lake as jobs see it: raw hours to read, Iceberg tables to read and to write.

The catalog is a setting of the session (`spark.sql.catalog.glue_catalog…`), so a job is the same file on Glue, on this
machine and in tests: Glue's catalog on AWS, the emulator's locally, a folder in tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType

from glue_jobs.shared.arguments import Window
from glue_jobs.shared.files import existing
from glue_jobs.transforms.events import SCHEMA, copy_order
from glue_jobs.transforms.tables import EVENTS, TABLES, Table

CATALOG = "glue_catalog"
# A retry writes the copy of an event at most so long after it: SQS has then moved the message to a dead-letter queue.
COPIES_APART = timedelta(hours=1)
NEW = "new_rows"


def session(name: str) -> SparkSession:
    """Return the Spark session of a job, which counts days in UTC."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


def read_raw(spark: SparkSession, path: str, window: Window, *, file_format: str = "parquet") -> DataFrame:
    """Return the raw events that arrived within the hours that the window touches; `path` is without partitions."""
    files = [found for hour in _hours(spark, path.rstrip("/"), window) for found in existing(spark, hour)]
    if not files:
        return spark.range(0).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in SCHEMA))
    return spark.read.schema(SCHEMA).format(file_format).load(files)


def _hours(spark: SparkSession, path: str, window: Window) -> Iterator[str]:
    """Return the folders of the hours, as Firehose names them, of which many hold nothing and are not there."""
    first, last = (f"{moment:%Y-%m-%d/%H}" for moment in (window.start, window.end - timedelta(microseconds=1)))
    for day in window.days:
        for found in existing(spark, f"{path}/dt={day}/hour=*"):
            if first <= f"{day}/{found.rpartition('=')[2]}" <= last:
                yield found


@dataclass(frozen=True, slots=True)
class Lake:
    """The Iceberg tables of one stage's database."""

    spark: SparkSession
    database: str

    def name(self, table: str) -> str:
        """Return a table's name for Spark's SQL."""
        return f"{CATALOG}.{self.database}.{table}"

    def events(self, window: Window) -> DataFrame:
        """Return the events that occurred in the window, each once."""
        return self.rows(EVENTS.name, window)

    def rows(self, table: str, window: Window) -> DataFrame:
        """Return a table's rows of the window."""
        made = self.ensure(table)
        return self.spark.table(self.name(table)).where(_is_within(made, window))

    def ensure(self, table: str) -> Table:
        """Make the table if it is not there, and add the columns that it does not have yet; return what it is."""
        made, name = TABLES[table], self.name(table)
        if not self.spark.catalog.tableExists(name):
            self.spark.sql(made.creation(name))
            self.spark.sql(made.ordering(name))
        for column, kind in made.missing(self.spark.table(name).schema).items():
            self.spark.sql(f"ALTER TABLE {name} ADD COLUMN `{column}` {kind.simpleString()}")
        return made

    def replace(self, table: str, frame: DataFrame, window: Window) -> None:
        """Put the rows in the place of all that the table has of the window, which is one of whole days.

        One commit: readers see the old rows or the new ones. Twice is as once.
        """
        made = self.ensure(table)
        if not window.is_whole_days:
            raise ValueError(f"{table} is replaced by whole days, not from {window.start} to {window.end}")
        chosen = frame.select(*made.schema.names).where(_is_within(made, window))
        chosen.writeTo(self.name(table)).overwrite(_is_within(made, window))

    def merge_late(self, frame: DataFrame) -> None:
        """Add events to `events`; of copies, the one stays that sorts first, whichever came first.

        The frame has each `event_id` once. Only the days around its events are read and, where a copy changes,
        written: that is what the bounds in the condition are for.
        """
        self.ensure(EVENTS.name)
        first, last = F.min("occurred_at").cast("string"), F.max("occurred_at").cast("string")
        bounds = frame.agg(first.alias("first"), last.alias("last")).first()
        if bounds is None or bounds["first"] is None:
            return
        frame.select(*SCHEMA.names).createOrReplaceTempView(NEW)
        self.spark.sql(_merge(self.name(EVENTS.name), first=bounds["first"], last=bounds["last"]))
        self.spark.catalog.dropTempView(NEW)


def _merge(events: str, *, first: str, last: str) -> str:
    apart = f"INTERVAL '{COPIES_APART // timedelta(seconds=1)}' SECOND"
    return f"""
        MERGE INTO {events} AS old USING {NEW} AS new
        ON old.event_id = new.event_id
            AND old.occurred_at >= TIMESTAMP '{first}' - {apart} AND old.occurred_at <= TIMESTAMP '{last}' + {apart}
        WHEN MATCHED AND struct({", ".join(copy_order("new"))}) < struct({", ".join(copy_order("old"))})
            THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *
    """


def _is_within(table: Table, window: Window) -> Column:
    """Tell whether a row is of the window; of a table by days, those of all days that the window touches."""
    column = F.col(table.time)
    if isinstance(table.schema[table.time].dataType, DateType):
        return column.between(window.days[0], window.days[-1])
    return (column >= F.lit(window.start)) & (column < F.lit(window.end))
