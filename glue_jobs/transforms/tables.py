"""The definitions of the Iceberg tables: columns, partitions and sort order of their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pyspark.sql.types import (
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from glue_jobs.transforms.events import SCHEMA

# Athena reads format version 2, not 3. Each commit deletes old metadata, which frequent commits would accumulate.
COMMON = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    # One file for each day of a report. Iceberg's default, range, computes all rows twice to find their bounds.
    "write.distribution-mode": "hash",
}
# A merge that changes a row writes a delete file instead of rewriting the data file.
MERGED = {"write.merge.mode": "merge-on-read"}
TYPES = {
    "date": DateType(),
    "timestamp": TimestampType(),
    "string": StringType(),
    "bigint": LongType(),
    "double": DoubleType(),
}


def schema(**types: str) -> StructType:
    """Return a schema; values are Spark's short names of types."""
    return StructType([StructField(name, TYPES[kind]) for name, kind in types.items()])


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """An Iceberg table. `time` is the column of type date or timestamp that time windows apply to."""

    name: str
    schema: StructType
    time: str
    partitions: tuple[str, ...]
    order: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def create_statement(self, identifier: str) -> str:
        """Return the `CREATE TABLE IF NOT EXISTS` statement."""
        columns = ", ".join(f"`{column.name}` {column.dataType.simpleString()}" for column in self.schema)
        properties = ", ".join(f"'{name}'='{value}'" for name, value in (COMMON | dict(self.properties)).items())
        return (
            f"CREATE TABLE IF NOT EXISTS {identifier} ({columns}) USING iceberg"
            f" PARTITIONED BY ({', '.join(self.partitions)}) TBLPROPERTIES ({properties})"
        )

    def ordering_statement(self, identifier: str) -> str:
        """Return the statement that makes writers sort within each task."""
        return f"ALTER TABLE {identifier} WRITE LOCALLY ORDERED BY {', '.join(self.order)}"


EVENTS = IcebergTable(
    "events",
    SCHEMA,
    time="occurred_at",
    partitions=("days(occurred_at)",),
    order=("capability", "topic", "sequence"),
    properties=MappingProxyType(
        {
            **MERGED,
            # No shuffle: a task writes the files of all of its days at the same time and need not sort by day.
            "write.distribution-mode": "none",
            "write.spark.fanout.enabled": "true",
        }
    ),
)
RENDEZVOUS_DAILY = IcebergTable(
    "rendezvous_daily",
    schema(day="date", metric="string", label="string", exact="bigint", shown="bigint"),
    time="day",
    partitions=("day",),
    order=("metric", "label"),
)
SPLIT_DAILY = IcebergTable(
    "split_daily",
    schema(day="date", metric="string", queue="string", session="string", label="string", value="bigint"),
    time="day",
    partitions=("day",),
    order=("metric", "queue", "session", "label"),
)
TOPIC_HOURLY = IcebergTable(
    "topic_hourly",
    schema(
        day="date",
        hour="timestamp",
        exchange="string",
        topic="string",
        publisher="string",
        publications="bigint",
        copies="bigint",
        retried="bigint",
        dead="bigint",
        dropped="bigint",
        alternate="bigint",
        logged="bigint",
        bytes_in="bigint",
        bytes_out="bigint",
    ),
    time="day",
    partitions=("day",),
    order=("exchange", "topic", "hour"),
)
DELIVERY_HOURLY = IcebergTable(
    "delivery_hourly",
    schema(
        day="date",
        hour="timestamp",
        capability="string",
        source="string",
        destination="string",
        reason="string",
        delivered="bigint",
        again="bigint",
        retried="bigint",
        dead="bigint",
        bytes="bigint",
        p50_ms="bigint",
        p95_ms="bigint",
        p99_ms="bigint",
        max_ms="bigint",
    ),
    time="day",
    partitions=("day",),
    order=("capability", "source", "destination", "hour"),
)
ORDER_AUDIT = IcebergTable(
    "order_audit",
    schema(
        day="date",
        exchange="string",
        topic="string",
        queue="string",
        finding="string",
        first_sequence="bigint",
        last_sequence="bigint",
        number="bigint",
        dead="bigint",
        waiting="bigint",
        elsewhere="bigint",
        nowhere="bigint",
        before_event_id="string",
        before_at="timestamp",
        after_event_id="string",
        after_at="timestamp",
    ),
    time="day",
    partitions=("day",),
    order=("finding", "exchange", "topic", "queue"),
)
COST_DAILY = IcebergTable(
    "cost_daily",
    schema(
        day="date",
        capability="string",
        what="string",
        item="string",
        number="bigint",
        bytes="bigint",
        units_least="bigint",
        units_most="bigint",
        usd_least="double",
        usd_most="double",
    ),
    time="day",
    partitions=("day",),
    order=("capability", "what", "item"),
)
LOGS = IcebergTable(
    "logs",
    StructType(
        [
            *schema(exchange="string", topic="string", sequence="bigint", occurred_at="timestamp"),
            *schema(publication="bigint", publisher="string", body="string", omitted_bytes="bigint"),
            StructField("headers", MapType(StringType(), StringType())),
            *schema(audience="string"),
        ]
    ),
    time="occurred_at",
    partitions=("exchange", "days(occurred_at)"),
    order=("topic", "sequence"),
    properties=MappingProxyType(MERGED),
)
LOG_TOPICS = IcebergTable(
    "log_topics",
    schema(
        exchange="string",
        topic="string",
        complete_to="bigint",
        events="bigint",
        missing="bigint",
        first_at="timestamp",
        last_at="timestamp",
        exported_at="timestamp",
    ),
    time="exported_at",
    partitions=("exchange",),
    order=("topic",),
)
REPORTS = (RENDEZVOUS_DAILY, SPLIT_DAILY, TOPIC_HOURLY, DELIVERY_HOURLY, ORDER_AUDIT, COST_DAILY)
TABLES = MappingProxyType({table.name: table for table in (EVENTS, LOGS, LOG_TOPICS, *REPORTS)})
