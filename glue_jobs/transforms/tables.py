"""The definitions of the Iceberg tables: columns, partitions and sort order of their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pyspark.sql.types import StructType

from glue_jobs.transforms.events import SCHEMA, schema

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


def _report(name: str, columns: str, *, order: tuple[str, ...]) -> IcebergTable:
    """Return the table of a daily report."""
    return IcebergTable(name, schema(f"day date, {columns}"), time="day", partitions=("day",), order=order)


RENDEZVOUS_DAILY = _report(
    "rendezvous_daily", "metric string, label string, exact bigint, shown bigint", order=("metric", "label")
)
SPLIT_DAILY = _report(
    "split_daily",
    "metric string, queue string, session string, label string, value bigint",
    order=("metric", "queue", "session", "label"),
)
TOPIC_HOURLY = _report(
    "topic_hourly",
    "hour timestamp, exchange string, topic string, publisher string, publications bigint, copies bigint, "
    "retried bigint, dead bigint, dropped bigint, alternate bigint, logged bigint, bytes_in bigint, bytes_out bigint",
    order=("exchange", "topic", "hour"),
)
DELIVERY_HOURLY = _report(
    "delivery_hourly",
    "hour timestamp, capability string, source string, destination string, reason string, delivered bigint, "
    "again bigint, retried bigint, dead bigint, bytes bigint, p50_ms bigint, p95_ms bigint, p99_ms bigint, "
    "max_ms bigint",
    order=("capability", "source", "destination", "hour"),
)
ORDER_AUDIT = _report(
    "order_audit",
    "exchange string, topic string, queue string, finding string, first_sequence bigint, last_sequence bigint, "
    "number bigint, dead bigint, waiting bigint, elsewhere bigint, nowhere bigint, before_event_id string, "
    "before_at timestamp, after_event_id string, after_at timestamp",
    order=("finding", "exchange", "topic", "queue"),
)
COST_DAILY = _report(
    "cost_daily",
    "capability string, what string, item string, number bigint, bytes bigint, units_least bigint, "
    "units_most bigint, usd_least double, usd_most double",
    order=("capability", "what", "item"),
)
LOGS = IcebergTable(
    "logs",
    schema(
        "exchange string, topic string, sequence bigint, occurred_at timestamp, publication bigint, publisher string, "
        "body string, omitted_bytes bigint, headers map<string,string>, audience string"
    ),
    time="occurred_at",
    partitions=("exchange", "days(occurred_at)"),
    order=("topic", "sequence"),
    properties=MappingProxyType(MERGED),
)
LOG_TOPICS = IcebergTable(
    "log_topics",
    schema(
        "exchange string, topic string, complete_to bigint, events bigint, missing bigint, first_at timestamp, "
        "last_at timestamp, exported_at timestamp"
    ),
    time="exported_at",
    partitions=("exchange",),
    order=("topic",),
)
REPORTS = (RENDEZVOUS_DAILY, SPLIT_DAILY, TOPIC_HOURLY, DELIVERY_HOURLY, ORDER_AUDIT, COST_DAILY)
TABLES = MappingProxyType({table.name: table for table in (EVENTS, LOGS, LOG_TOPICS, *REPORTS)})
