"""The raw history: its schema, without the copies of an event, within some days."""

from collections.abc import Iterator
from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

SCHEMA = StructType(
    [
        StructField("version", IntegerType()),
        StructField("event_id", StringType()),
        StructField("occurred_at", TimestampType()),
        StructField("capability", StringType()),
        StructField("kind", StringType()),
        StructField("outcome", StringType()),
        StructField("reason", StringType()),
        StructField("message_id", StringType()),
        StructField("topic", StringType()),
        StructField("sequence", LongType()),
        StructField("source", StringType()),
        StructField("destination", StringType()),
        StructField("size_bytes", LongType()),
        StructField("latency_ms", LongType()),
        StructField("attempt", IntegerType()),
        StructField("labels", MapType(StringType(), StringType())),
    ]
)


def deduplicated(events: DataFrame) -> DataFrame:
    """Keep one row of each `event_id`: the earliest, and among equally early ones always the same.

    A row without an `event_id` gets one that is made of all it says.
    """
    own_id = F.sha2(F.to_json(F.struct(*map(F.expr, _fields()))), 256)
    named = events.withColumn("event_id", F.coalesce("event_id", own_id))
    # dropDuplicates would keep whichever row arrives first, so two runs could differ.
    copies = Window.partitionBy("event_id").orderBy(*(F.expr(key).asc_nulls_last() for key in duplicate_order()))
    # Not row_number: Spark would look for first rows before the shuffle, too, and sort for it; there are few copies.
    ahead = named.withColumn("ahead", F.lag("event_id").over(copies))
    return ahead.where(F.col("ahead").isNull()).select(*events.columns)


def duplicate_order(row: str | None = None) -> tuple[str, str]:
    """Return what copies of an event are sorted by, in SQL: when it happened, then something of all that it says."""
    prefix = f"{row}." if row else ""
    # A hash passes over nulls, so each field stands behind its number.
    numbered = [word for number, name in enumerate(_fields(prefix)) for word in (str(number), name)]
    return f"{prefix}occurred_at", f"xxhash64({', '.join(numbered)})"


def _fields(prefix: str = "") -> Iterator[str]:
    for column in SCHEMA:
        name = f"{prefix}{column.name}"
        # Maps have neither an order nor a hash; and array_sort would call a comparison of SQL for each step.
        yield f"sort_array(map_entries({name}))" if isinstance(column.dataType, MapType) else name


def within_days(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Add `day`, the UTC day of `occurred_at`, and keep the days from `first` to `last`."""
    is_within = F.col("day").between(first, last)
    return events.withColumn("day", F.to_date("occurred_at")).where(is_within).select("day", *events.columns)


def rounded(value: Column) -> Column:
    """Return the nearest whole number, away from zero in the middle, also where a sum misses the middle by a hair."""
    return F.round(F.round(value, 6)).cast("long")
