"""The schema of raw events, their deduplication, and their selection by day."""

from collections.abc import Iterator, Mapping
from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TYPES: Mapping[str, DataType] = {
    "date": DateType(),
    "timestamp": TimestampType(),
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "map<string,string>": MapType(StringType(), StringType()),
}


def schema(columns: str) -> StructType:
    """Return the schema of columns with Spark's short names of types, such as `day date, number bigint`."""
    pairs = (column.split() for column in columns.split(", "))
    return StructType([StructField(name, TYPES[kind]) for name, kind in pairs])


SCHEMA = schema(
    "version int, event_id string, occurred_at timestamp, capability string, kind string, outcome string, "
    "reason string, message_id string, topic string, sequence bigint, source string, destination string, "
    "size_bytes bigint, latency_ms bigint, attempt int, labels map<string,string>"
)


def deduplicated(events: DataFrame) -> DataFrame:
    """Keep one row of each `event_id`: the earliest, and of equally early rows always the same.

    A row without an `event_id` gets a hash of all of its fields. Columns that only a later version knows stay.
    """
    own_id = F.sha2(F.to_json(F.struct(*map(F.expr, _fields()))), 256)
    named = events.withColumn("event_id", F.coalesce("event_id", own_id))
    # dropDuplicates keeps the row that a task reads first, so two runs could differ.
    keys = [F.expr(key).asc_nulls_last() for key in duplicate_order()]
    unknown = [F.col(name).isNull() for name in events.columns if name not in SCHEMA.names]
    copies = Window.partitionBy("event_id").orderBy(*keys, *unknown)
    # lag, not row_number: for row_number Spark also sorts before the shuffle, although there are few duplicates.
    ahead = named.withColumn("ahead", F.lag("event_id").over(copies))
    return ahead.where(F.col("ahead").isNull()).select(*events.columns)


def duplicate_order(row: str | None = None) -> tuple[str, str]:
    """Return the SQL sort keys of an event's duplicates: its time, then a hash of all of its fields."""
    prefix = f"{row}." if row else ""
    # xxhash64 skips nulls, so each field is preceded by its number.
    numbered = [word for number, name in enumerate(_fields(prefix)) for word in (str(number), name)]
    return f"{prefix}occurred_at", f"xxhash64({', '.join(numbered)})"


def _fields(prefix: str = "") -> Iterator[str]:
    for column in SCHEMA:
        name = f"{prefix}{column.name}"
        # Maps can be neither sorted nor hashed. sort_array is faster than array_sort, which calls SQL to compare.
        yield f"sort_array(map_entries({name}))" if isinstance(column.dataType, MapType) else name


def within_days(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Add `day`, the UTC day of `occurred_at`, and keep the days from `first` to `last`."""
    is_within = F.col("day").between(first, last)
    return events.withColumn("day", F.to_date("occurred_at")).where(is_within).select("day", *events.columns)


def rounded(value: Column) -> Column:
    """Round to the nearest integer, half away from zero, also when a sum is inexact by less than 0.000001."""
    return F.round(F.round(value, 6)).cast("long")
