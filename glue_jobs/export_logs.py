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
It stores 50,000 topics at a time, 1,000 of each exchange by rotation, and stops after 15 minutes;
the next run continues there.
`logs` contains each event once, also after killed runs. `log_topics` has for each topic the number up to which the
export is complete (`complete_to`), and how many of these numbers were removed before their export (`missing`).
"""

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import boto3
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from glue_jobs.shared.arguments import parse_arguments
from glue_jobs.shared.lake import Lake, spark_session, time_bounds
from glue_jobs.shared.log_files import write_log_files
from glue_jobs.shared.log_reader import LogTables, read_topics
from glue_jobs.transforms.tables import LOG_TOPICS, LOGS

REQUIRED = ("database", "log_path", "live_table", "exchange_table", "region")
OPTIONAL = ("exchange", "topics")
MAX_TASKS = 64
TOPICS_AT_ONCE = 50_000  # are read and stored together
SECONDS = 900  # after which no other part begins; the job has 30 minutes
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
ROW_SCHEMA = StructType([*LOGS.schema, StructField("missing", LongType())])


def main(argv: Sequence[str]) -> None:
    """Export new events, and print their number."""
    arguments = parse_arguments(argv, REQUIRED, optional=OPTIONAL)
    lake = Lake(spark_session("export_logs"), arguments["database"])
    tables = LogTables(arguments["live_table"], arguments["exchange_table"], arguments["region"])
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    topics = tables.topics(arguments.get("exchange"), arguments.get("topics", "#"), last_topics(lake))
    end = time.monotonic() + SECONDS
    while part := list(islice(topics, TOPICS_AT_ONCE)):
        if time.monotonic() >= end:
            print("export_logs: the next run continues with the other topics")
            return
        rows = _new_rows(lake, tables, part)
        count = rows.count()
        print(f"export_logs: {count} events of {len(part)} topics")
        if count:
            merge_rows(lake, rows)
            _write_text(lake, rows, arguments["log_path"].rstrip("/"), region=arguments["region"])
            # Last: a run that is killed before has its topics exported again, with their texts.
            merge_topics(lake, rows)


def last_topics(lake: Lake) -> dict[str, str]:
    """Return the topic of each exchange that was exported last, after which a run begins."""
    newest = F.max_by("topic", F.struct("exported_at", "topic")).alias("topic")
    rows = lake.spark.table(lake.name(LOG_TOPICS.name)).groupBy("exchange").agg(newest).collect()
    return {row.exchange: row.topic for row in rows}


def positions(lake: Lake, topics: Sequence[tuple[str, str, datetime]]) -> list[tuple[str, str, int]]:
    """Return the last exported number of each topic; `topics` have the time at which their exchange was declared.

    An exchange that was deleted and declared again has begun its numbers anew.
    """
    wanted = lake.spark.createDataFrame([topic[:2] for topic in topics], "exchange string, topic string")
    last_at = F.unix_millis("last_at").alias("last_at")  # collected times are in the machine's time zone
    known = lake.spark.table(lake.name(LOG_TOPICS.name)).join(F.broadcast(wanted), on=["exchange", "topic"])
    rows = known.select("exchange", "topic", "complete_to", last_at).collect()
    exported = {(row.exchange, row.topic): (row.complete_to, row.last_at) for row in rows}
    found = []
    for exchange, topic, declared_at in topics:
        number, at = exported.get((exchange, topic), (0, 0))
        found.append((exchange, topic, number if at >= declared_at.timestamp() * 1000 else 0))
    return found


def _new_rows(lake: Lake, tables: LogTables, topics: Sequence[tuple[str, str, datetime]]) -> DataFrame:
    """Read the events after the last exported number of each topic once: a second read might return more."""
    tasks = lake.spark.sparkContext.parallelize(positions(lake, topics), max(1, min(len(topics), MAX_TASKS)))
    now = datetime.now(UTC)
    found = tasks.mapPartitions(lambda part: read_topics(tables, part, now=now))
    return lake.spark.createDataFrame(found, ROW_SCHEMA).localCheckpoint()


def merge_rows(lake: Lake, rows: DataFrame) -> None:
    """Add the events that `logs` does not have."""
    keys = ("exchange", "topic", "sequence", "occurred_at")  # numbers begin anew in an exchange that was deleted
    same = " AND ".join(f"old.{name} = new.{name}" for name in keys)
    lake.merge(LOGS.name, rows, condition=f"{same} AND {time_bounds(rows)}")


def merge_topics(lake: Lake, rows: DataFrame) -> None:
    """Update `log_topics`, except topics that another run has exported further since this one began.

    A run that began with the first number of an exchange that was declared again has later events than the row.
    """
    lake.merge(
        LOG_TOPICS.name,
        rows.transform(topic_totals),
        condition="old.exchange = new.exchange AND old.topic = new.topic",
        update_if="old.complete_to = new.after OR (new.after = 0 AND old.last_at < new.first_at)",
        update={
            **{name: f"new.{name}" for name in ("complete_to", "last_at", "exported_at")},
            **{name: f"old.{name} + new.{name}" for name in ("events", "missing")},
        },
    )


def topic_totals(rows: DataFrame) -> DataFrame:
    """Return the rows of `log_topics` for new rows of `logs`, and `after`, the number that they continue."""
    return rows.groupBy("exchange", "topic").agg(
        F.min(F.col("sequence") - F.col("missing") - 1).alias("after"),
        F.max("sequence").alias("complete_to"),
        F.count("*").alias("events"),
        F.sum("missing").alias("missing"),
        F.min("occurred_at").alias("first_at"),
        F.max("occurred_at").alias("last_at"),
        F.current_timestamp().alias("exported_at"),
    )


def _write_text(lake: Lake, rows: DataFrame, path: str, *, region: str) -> None:
    """Rewrite the files of the days with new events, from the table, so that files and table agree.

    Of several runs, the last to add events to a day reads all of them, and its file is the longest.
    """
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
