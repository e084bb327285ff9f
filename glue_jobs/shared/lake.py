"""The history lake: reads of raw hours, and reads and writes of Iceberg tables.

The catalog is a setting of the Spark session (`spark.sql.catalog.glue_catalog…`), so the jobs are the same on Glue, on
the local stage and in tests: the catalog is Glue's on AWS, the emulator's on the local stage, and a folder in tests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructType

from glue_jobs.shared.arguments import TimeWindow
from glue_jobs.shared.commits import repeat_on_conflict
from glue_jobs.shared.files import glob_paths, newest_path
from glue_jobs.transforms.events import SCHEMA, duplicate_order
from glue_jobs.transforms.tables import EVENTS, TABLES, IcebergTable

CATALOG = "glue_catalog"
# The longest delay of an event's duplicate: by then SQS has moved a retried message to a dead-letter queue.
MAX_DUPLICATE_DELAY = timedelta(hours=1)
WAYS = ("Read", "Write")
# For a frame of few rows: its single task writes the files of all days, without a shuffle by day.
ONE_TASK = MappingProxyType({"distribution-mode": "none", "fanout-enabled": "true"})
SESSION_SETTINGS = MappingProxyType(
    {
        "spark.sql.session.timeZone": "UTC",
        # Times before 1900 as they are written; by default they end a job, since Spark 2 wrote another calendar.
        **{f"spark.sql.parquet.{kind}RebaseModeIn{way}": "CORRECTED" for kind in ("datetime", "int96") for way in WAYS},
        # Only Spark's page shows query plans, and the text of a large one takes as long as a small query.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.maxPlanStringLength": "1000",
    }
)


def spark_session(name: str) -> SparkSession:
    """Return a job's Spark session, with UTC as its time zone."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    for setting, value in SESSION_SETTINGS.items():
        spark.conf.set(setting, value)
    return spark


def read_raw(
    spark: SparkSession, path: str, window: TimeWindow, *, file_format: str = "parquet", skip_damaged: bool = False
) -> DataFrame:
    """Return the raw events that arrived in the hours that the window overlaps; `path` is without partitions.

    With `skip_damaged`, files that cannot be read have no events; otherwise they end the job.
    """
    folders = [found for hour in _hours(spark, path.rstrip("/"), window) for found in glob_paths(spark, hour)]
    if not folders:
        return _no_rows(spark, SCHEMA)
    reader = spark.read.schema(SCHEMA).format(file_format).option("ignoreCorruptFiles", skip_damaged)
    return reader.load(folders)


def _no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    return spark.range(0).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema))


def damaged_raw_files(spark: SparkSession, path: str, window: TimeWindow, *, file_format: str) -> list[str]:
    """Return the unreadable raw files of the hours that the window overlaps."""
    read = read_raw(spark, path, window, file_format=file_format, skip_damaged=True)
    names = {_name_of(row.file) for row in read.select(F.input_file_name().alias("file")).distinct().collect()}
    files = (found for hour in _hours(spark, path.rstrip("/"), window) for found in glob_paths(spark, f"{hour}/[!_.]*"))
    return [file for file in files if _name_of(file) not in names]


def _name_of(file: str) -> str:
    """Return a file's name with its folders of day and hour: the scheme of its URL depends on the reader."""
    return "/".join(unquote(file).split("/")[-3:])


def _hours(spark: SparkSession, path: str, window: TimeWindow) -> Iterator[str]:
    """Yield the existing folders of the hours, in Firehose's naming; many hours have no folder."""
    first, last = (f"{moment:%Y-%m-%d/%H}" for moment in (window.start, window.end - timedelta(microseconds=1)))
    for day in window.days:
        for found in glob_paths(spark, f"{path}/dt={day}/hour=*"):
            if first <= f"{day}/{found.rpartition('=')[2]}" <= last:
                yield found


@dataclass(frozen=True, slots=True)
class Lake:
    """The Iceberg tables of a stage's database."""

    spark: SparkSession
    database: str

    def name(self, table: str) -> str:
        """Return a table's qualified name in Spark SQL."""
        return f"{CATALOG}.{self.database}.{table}"

    def events(self, window: TimeWindow) -> DataFrame:
        """Return the deduplicated events that occurred in the window."""
        return self.rows(EVENTS.name, window)

    def rows(self, table: str, window: TimeWindow) -> DataFrame:
        """Return a table's rows within the window; a table that no job has written yet has none.

        The table is not created: a job may create only the tables that it writes.
        """
        definition, is_known = TABLES[table], repeat_on_conflict(partial(self._register_unknown, table))
        found = self.spark.table(self.name(table)) if is_known else _no_rows(self.spark, definition.schema)
        return found.where(_is_within(definition, window))

    def register_tables(self) -> None:
        """Register all tables whose files exist but which the catalog does not know.

        The catalog forgets its tables with their database. Empty tables at the same paths would hide the files, and
        their maintenance would delete them.
        """
        for table in TABLES:
            repeat_on_conflict(partial(self._register_unknown, table))

    def _register_unknown(self, table: str) -> bool:
        return self.exists(table) or self._register(table)

    def exists(self, table: str) -> bool:
        """Return whether the catalog knows the table."""
        return bool(self.spark.catalog.tableExists(self.name(table)))

    def metadata_pattern(self, table: str) -> str:
        """Return the glob pattern of the metadata files at the table's path."""
        database = self.spark.catalog.getDatabase(f"{CATALOG}.{self.database}")
        return f"{str(database.locationUri).rstrip('/')}/{table}/metadata/*.metadata.json"

    def _register(self, table: str) -> bool:
        # Each commit writes a metadata file: the newest one is the state that the catalog knew last.
        newest = newest_path(self.spark, self.metadata_pattern(table))
        if newest is None:
            return False
        arguments = f"table => '{self.database}.{table}', metadata_file => '{newest}'"
        self.spark.sql(f"CALL {CATALOG}.system.register_table({arguments})")
        return True

    def ensure(self, table: str) -> IcebergTable:
        """Register or create the table if the catalog does not know it, and return its definition."""
        definition = TABLES[table]
        repeat_on_conflict(lambda: self._make(definition))
        return definition

    def _make(self, definition: IcebergTable) -> None:
        name = self.name(definition.name)
        if not self._register_unknown(definition.name):
            self.spark.sql(definition.create_statement(name))
            self.spark.sql(definition.ordering_statement(name))

    def snapshot(self, table: str) -> int:
        """Return the id of the table's current snapshot, or 0 before its first; PySpark has no API for it."""
        self.ensure(table)
        self.spark.catalog.refreshTable(self.name(table))
        util = self.spark.sparkContext._jvm.org.apache.iceberg.spark.Spark3Util  # type: ignore[union-attr]  # noqa: SLF001 - never None
        current = util.loadIcebergTable(self.spark._jsparkSession, self.name(table)).currentSnapshot()  # noqa: SLF001
        return int(current.snapshotId()) if current else 0

    def replace(
        self,
        table: str,
        frame: DataFrame,
        window: TimeWindow,
        *,
        since: int | None = None,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Replace the table's rows within a window of whole days.

        It is one commit, so readers see either the old or the new rows, and idempotent: of two runs at once, the rows
        of the last remain. With `since`, the snapshot that the frame was read from, the commit is rejected if another
        run has changed the window's rows since then. Raises `ValueError` for a window of parts of days.
        """
        definition = self.ensure(table)
        if not window.is_whole_days:
            raise ValueError(f"{table} is replaced in whole days, not from {window.start} to {window.end}")
        rows = frame.where(_is_within(definition, window)).select(*self._columns(definition, frame))
        checks = {} if since is None else {"isolation-level": "serializable"}
        if since:
            checks["validate-from-snapshot-id"] = f"{since}"
        writer = rows.writeTo(self.name(table)).options(**options, **checks)
        if since is None:
            repeat_on_conflict(lambda: writer.overwrite(_is_within(definition, window)))
        else:
            writer.overwrite(_is_within(definition, window))

    def append(self, table: str, frame: DataFrame) -> None:
        """Append a few rows to a table. A run that is repeated appends them again."""
        definition = self.ensure(table)
        rows = frame.select(*self._columns(definition, frame))
        rows.writeTo(self.name(table)).options(**ONE_TASK).append()

    def _columns(self, definition: IcebergTable, frame: DataFrame) -> list[Column]:
        """Return the columns of the table, with null for those that only a later version knows and the frame lacks."""
        stored = self.spark.table(self.name(definition.name)).schema
        later = [field for field in stored if field.name not in definition.schema.names]
        nulls = {field.name: F.lit(None).cast(field.dataType).alias(field.name) for field in later}
        kept = [F.col(name) if name in frame.columns else null for name, null in nulls.items()]
        return [*map(F.col, definition.schema.names), *kept]

    def merge(
        self,
        table: str,
        frame: DataFrame,
        *,
        condition: str,
        update_if: str = "false",
        update: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Merge rows into a table: insert each row `new` that matches no row `old` by `condition`.

        A row that matches is changed if `update_if` is true: in the columns of `update`, by default in all.

        The merge has an update even if no row ever matches: Spark makes an append of a merge that only inserts, and
        Iceberg commits appends without a look at other commits, so that two runs at once would insert a row twice. The
        commit of any other merge is rejected if another run has added rows that may match.
        """
        definition = self.ensure(table)
        new = {name: f"new.{name}" for name in definition.schema.names}
        changes = ", ".join(f"{name} = {value}" for name, value in (update or new).items())
        statement = f"""
            MERGE INTO {self.name(table)} AS old USING {{new}} AS new ON {condition}
            WHEN MATCHED AND {update_if} THEN UPDATE SET {changes}
            WHEN NOT MATCHED THEN INSERT ({", ".join(new)}) VALUES ({", ".join(new.values())})
        """  # noqa: S608 - contains no user input
        repeat_on_conflict(lambda: self.spark.sql(statement, new=frame))

    def merge_events(self, frame: DataFrame) -> None:
        """Merge events into `events`; of the duplicates of an event, the first in `duplicate_order` remains.

        The frame has each `event_id` once.
        """
        self.ensure(EVENTS.name)
        bounds = time_bounds(frame, margin=MAX_DUPLICATE_DELAY)
        if bounds is None:
            return
        new, old = (f"struct({', '.join(duplicate_order(row))})" for row in ("new", "old"))
        condition = f"old.event_id = new.event_id AND {bounds}"
        self.merge(EVENTS.name, frame, condition=condition, update_if=f"{new} < {old}")


def time_bounds(frame: DataFrame, *, margin: timedelta = timedelta()) -> str | None:
    """Return the condition that a row `old` occurred around a frame's rows; None for a frame without rows.

    It limits a merge to these days: only they are read and, where a row changes, written.
    """
    # Texts are in the session's time zone, UTC; collected times would be in the machine's.
    first, last = F.min("occurred_at").cast("string"), F.max("occurred_at").cast("string")
    bounds = frame.agg(first.alias("first"), last.alias("last")).first()
    if bounds is None or bounds["first"] is None:
        return None
    apart = f"INTERVAL '{margin // timedelta(seconds=1)}' SECOND"
    return (
        f"old.occurred_at >= TIMESTAMP '{bounds['first']}' - {apart}"
        f" AND old.occurred_at <= TIMESTAMP '{bounds['last']}' + {apart}"
    )


def _is_within(table: IcebergTable, window: TimeWindow) -> Column:
    """Return the condition that a row is within the window, or within its days for a table with dates."""
    column = F.col(table.time)
    if isinstance(table.schema[table.time].dataType, DateType):
        return column.between(window.days[0], window.days[-1])
    return (column >= F.lit(window.start)) & (column < F.lit(window.end))
