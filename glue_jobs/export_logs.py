"""Glue job: what topics of live exchanges had, as ordered text and in the table `logs`, up to where it is whole.

Arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; bookmarks are not used):

--database        the database of the tables: <stage>_history
--log_path        where the text goes: s3://<bucket>/logs
                  <log_path>/<exchange>/topic=<topic>/<day>.txt: a line for each event: time, number, message
--live_table      the table `Live`, in which a stage keeps what was published to live exchanges
--exchange_table  the table `Exchanges`
--region          the region of both
--exchange        one exchange; without it, every live one
--topics          a pattern as bindings have it, such as `jobs.*.log`; without it, every topic

A run takes what was published since the last one, so it must come more often than an exchange forgets events. `logs`
has an event once, whatever runs were killed, and `log_topics` says of each topic up to which number that is
everything (`complete_to`), and how many of those numbers were gone before they could be exported (`missing`).
"""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import boto3
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from glue_jobs.shared.arguments import resolved
from glue_jobs.shared.lake import Lake, session
from glue_jobs.shared.log_files import write_days
from glue_jobs.shared.log_reader import Place, read
from glue_jobs.transforms.tables import LOG_TOPICS, LOGS

REQUIRED = ("database", "log_path", "live_table", "exchange_table", "region")
OPTIONAL = ("exchange", "topics")
MOST_TASKS = 64
MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
ROWS = StructType([*LOGS.schema, StructField("missing", LongType())])


def main(argv: Sequence[str]) -> None:
    """Export what is new, and print how much that was."""
    given = resolved(argv, REQUIRED, optional=OPTIONAL)
    lake = Lake(session("export_logs"), given["database"])
    place = Place(given["live_table"], given["exchange_table"], given["region"])
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    topics = list(place.topics(given.get("exchange"), given.get("topics", "#")))
    rows = _new_rows(lake, place, topics)
    count = rows.count()
    print(f"export_logs: {count} events of {len(topics)} topics")
    if count:
        keep(lake, rows)
        _write_text(lake, rows, given["log_path"].rstrip("/"), region=given["region"])


def _new_rows(lake: Lake, place: Place, topics: Sequence[tuple[str, str]]) -> DataFrame:
    """Read what is behind the last number of each topic, once: the log may grow before it is read again."""
    known = {
        (row.exchange, row.topic): row.complete_to
        for row in lake.spark.table(lake.name(LOG_TOPICS.name)).select("exchange", "topic", "complete_to").collect()
    }
    asked = [(exchange, topic, known.get((exchange, topic), 0)) for exchange, topic in topics]
    tasks = lake.spark.sparkContext.parallelize(asked, max(1, min(len(asked), MOST_TASKS)))
    now = datetime.now(UTC)
    found = tasks.mapPartitions(lambda part: read(place, part, now=now))
    return lake.spark.createDataFrame(found, ROWS).localCheckpoint()


def keep(lake: Lake, rows: DataFrame) -> None:
    """Add the events, and only then say up to where the topics are whole."""
    new, logs, topics = "new_log_rows", lake.name(LOGS.name), lake.name(LOG_TOPICS.name)
    bounds = rows.agg(F.min("occurred_at").alias("first"), F.max("occurred_at").alias("last")).first()
    rows.select(*LOGS.schema.names).createOrReplaceTempView(new)
    same = "known.exchange = new.exchange AND known.topic = new.topic AND known.sequence = new.sequence"
    lake.spark.sql(
        f"MERGE INTO {logs} known USING {new} new ON {same} AND known.occurred_at BETWEEN :first AND :last "
        "WHEN NOT MATCHED THEN INSERT *",
        args={"first": bounds.first, "last": bounds.last},  # type: ignore[union-attr]  # there are rows
    )
    rows.transform(topics_of).createOrReplaceTempView(new)
    lake.spark.sql(
        f"MERGE INTO {topics} known USING {new} new ON known.exchange = new.exchange AND known.topic = new.topic "
        "WHEN MATCHED AND known.complete_to < new.complete_to THEN UPDATE SET complete_to = new.complete_to, "
        "events = known.events + new.events, missing = known.missing + new.missing, last_at = new.last_at, "
        "exported_at = new.exported_at WHEN NOT MATCHED THEN INSERT *"
    )
    lake.spark.catalog.dropTempView(new)


def topics_of(rows: DataFrame) -> DataFrame:
    """Return what new rows add to what is known of their topics."""
    return rows.groupBy("exchange", "topic").agg(
        F.max("sequence").alias("complete_to"),
        F.count("*").alias("events"),
        F.sum("missing").alias("missing"),
        F.min("occurred_at").alias("first_at"),
        F.max("occurred_at").alias("last_at"),
        F.current_timestamp().alias("exported_at"),
    )


def _write_text(lake: Lake, rows: DataFrame, path: str, *, region: str) -> None:
    """Write the days anew to which events came, from the table, so that a file is as whole as the table is."""
    # As text by Spark: to Python, a time is one of the machine's own zone.
    day, at = F.to_date("occurred_at").alias("day"), F.date_format("occurred_at", MOMENT).alias("at")
    touched = rows.select("exchange", "topic", day).distinct().localCheckpoint()
    first, last = touched.agg(F.min("day"), F.max("day")).first()  # type: ignore[misc]  # there are rows
    known = lake.spark.table(lake.name(LOGS.name)).select("*", day, at)
    within = (F.col("occurred_at") >= F.lit(first)) & (F.col("occurred_at") < F.lit(last + timedelta(days=1)))
    keys = ["exchange", "topic", "day"]
    whole = known.where(within).join(F.broadcast(touched), on=keys, how="left_semi")
    ordered = whole.repartition(*keys).sortWithinPartitions(*keys, "sequence")
    ordered.foreachPartition(lambda part: _write_days(part, path, region=region))


def _write_days(part: Iterable[Row], path: str, *, region: str) -> None:
    write_days(part, path, s3=boto3.client("s3", region_name=region))


if __name__ == "__main__":
    main(sys.argv)
