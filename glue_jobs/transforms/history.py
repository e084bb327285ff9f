"""The raw history: its schema, without the copies of an event, within some days."""

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


def without_copies(events: DataFrame) -> DataFrame:
    """Keep one row of each `event_id`: the earliest, and among equally early ones always the same.

    A row without an `event_id` cannot be told from another, so all of those are kept.
    """
    # dropDuplicates would keep whichever row arrives first, so two runs could differ.
    earliest_first = [F.col("occurred_at").asc_nulls_last(), *map(_sortable, events.schema)]
    copies = Window.partitionBy("event_id").orderBy(*earliest_first)
    numbered = events.withColumn("copy", F.row_number().over(copies.rowsBetween(Window.unboundedPreceding, 0)))
    is_kept = F.col("event_id").isNull() | (F.col("copy") == 1)
    return numbered.where(is_kept).select(*events.columns)


def _sortable(column: StructField) -> Column:
    if isinstance(column.dataType, MapType):
        return F.array_sort(F.map_entries(column.name))
    return F.col(column.name)


def within_days(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Add `day`, the UTC day of `occurred_at`, and keep the days from `first` to `last`."""
    is_within = F.col("day").between(first, last)
    return events.withColumn("day", F.to_date("occurred_at")).where(is_within).select("day", *events.columns)
