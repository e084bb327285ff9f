"""Glue job `export_logs`: the events of live exchanges by topic, in the table `logs` and as ordered text.

Arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; no bookmarks):

--database        the database of the tables: <stage>_lake
--log_path        the prefix of the text files: s3://<bucket>/logs
                  <log_path>/<exchange>/topic=<topic>/<day>.txt: a line for each event: time, number, message
--live_table      the DynamoDB table `Live`, which contains the events of live exchanges
--exchange_table  the DynamoDB table `Exchanges`
--region          the region of both
--exchange        one exchange; default: every live exchange
--topics          a binding pattern, such as `jobs.*.log`; default: every topic

A run exports the events since the last run, so the interval must be shorter than the retention of an exchange's events.
`logs` contains each event once, also after killed runs. `log_topics` has for each topic the number up to which the
export is complete (`complete_to`), and how many of these numbers were removed before their export (`missing`).
"""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import boto3
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from glue_jobs.shared.arguments import parse_arguments
from glue_jobs.shared.lake import Lake, spark_session
from glue_jobs.shared.log_files import write_log_files
from glue_jobs.shared.log_reader import LogTables, read_topics
from glue_jobs.transforms.tables import LOG_TOPICS, LOGS

REQUIRED = ("database", "log_path", "live_table", "exchange_table", "region")
OPTIONAL = ("exchange", "topics")
MAX_TASKS = 64
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
ROW_SCHEMA = StructType([*LOGS.schema, StructField("missing", LongType())])


def main(argv: Sequence[str]) -> None:
    """Export new events, and print their number."""
    arguments = parse_arguments(argv, REQUIRED, optional=OPTIONAL)
    lake = Lake(spark_session("export_logs"), arguments["database"])
    tables = LogTables(arguments["live_table"], arguments["exchange_table"], arguments["region"])
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    topics = list(tables.topics(arguments.get("exchange"), arguments.get("topics", "#")))
    rows = _new_rows(lake, tables, topics)
    count = rows.count()
    print(f"export_logs: {count} events of {len(topics)} topics")
    if count:
        merge_rows(lake, rows)
        _write_text(lake, rows, arguments["log_path"].rstrip("/"), region=arguments["region"])


def _new_rows(lake: Lake, tables: LogTables, topics: Sequence[tuple[str, str]]) -> DataFrame:
    """Read the events after the last exported number of each topic once: a second read might return more."""
    exported = {
        (row.exchange, row.topic): row.complete_to
        for row in lake.spark.table(lake.name(LOG_TOPICS.name)).select("exchange", "topic", "complete_to").collect()
    }
    positions = [(exchange, topic, exported.get((exchange, topic), 0)) for exchange, topic in topics]
    tasks = lake.spark.sparkContext.parallelize(positions, max(1, min(len(positions), MAX_TASKS)))
    now = datetime.now(UTC)
    found = tasks.mapPartitions(lambda part: read_topics(tables, part, now=now))
    return lake.spark.createDataFrame(found, ROW_SCHEMA).localCheckpoint()


def merge_rows(lake: Lake, rows: DataFrame) -> None:
    """Add the events to `logs`, and then update `log_topics`."""
    new, logs, topics = "new_log_rows", lake.name(LOGS.name), lake.name(LOG_TOPICS.name)
    bounds = rows.agg(F.min("occurred_at").alias("first"), F.max("occurred_at").alias("last")).first()
    rows.select(*LOGS.schema.names).createOrReplaceTempView(new)
    same = "known.exchange = new.exchange AND known.topic = new.topic AND known.sequence = new.sequence"
    lake.spark.sql(
        f"MERGE INTO {logs} known USING {new} new ON {same} AND known.occurred_at BETWEEN :first AND :last "
        "WHEN NOT MATCHED THEN INSERT *",
        args={"first": bounds.first, "last": bounds.last},  # type: ignore[union-attr]  # there are rows
    )
    rows.transform(topic_totals).createOrReplaceTempView(new)
    lake.spark.sql(
        f"MERGE INTO {topics} known USING {new} new ON known.exchange = new.exchange AND known.topic = new.topic "
        "WHEN MATCHED AND known.complete_to < new.complete_to THEN UPDATE SET complete_to = new.complete_to, "
        "events = known.events + new.events, missing = known.missing + new.missing, last_at = new.last_at, "
        "exported_at = new.exported_at WHEN NOT MATCHED THEN INSERT *"
    )
    lake.spark.catalog.dropTempView(new)


def topic_totals(rows: DataFrame) -> DataFrame:
    """Return the rows of `log_topics` for new rows of `logs`."""
    return rows.groupBy("exchange", "topic").agg(
        F.max("sequence").alias("complete_to"),
        F.count("*").alias("events"),
        F.sum("missing").alias("missing"),
        F.min("occurred_at").alias("first_at"),
        F.max("occurred_at").alias("last_at"),
        F.current_timestamp().alias("exported_at"),
    )


def _write_text(lake: Lake, rows: DataFrame, path: str, *, region: str) -> None:
    """Rewrite the files of the days with new events, from the table, so that files and table agree."""
    # Formatted by Spark, because collected times are in the machine's time zone.
    day, at = F.to_date("occurred_at").alias("day"), F.date_format("occurred_at", TIME_FORMAT).alias("at")
    touched = rows.select("exchange", "topic", day).distinct().localCheckpoint()
    first, last = touched.agg(F.min("day"), F.max("day")).first()  # type: ignore[misc]  # there are rows
    exported = lake.spark.table(lake.name(LOGS.name)).select("*", day, at)
    within = (F.col("occurred_at") >= F.lit(first)) & (F.col("occurred_at") < F.lit(last + timedelta(days=1)))
    keys = ["exchange", "topic", "day"]
    whole = exported.where(within).join(F.broadcast(touched), on=keys, how="left_semi")
    ordered = whole.repartition(*keys).sortWithinPartitions(*keys, "sequence")
    ordered.foreachPartition(lambda part: _write_files(part, path, region=region))


def _write_files(part: Iterable[Row], path: str, *, region: str) -> None:
    write_log_files(part, path, s3=boto3.client("s3", region_name=region))


if __name__ == "__main__":
    main(sys.argv)
