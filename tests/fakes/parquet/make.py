"""Makes the Parquet files of this folder from `sample_events`.

python -m tests.fakes.parquet.make duckdb    in the emulator's environment (signalbox/local/emulator/requirements.txt)
python -m tests.fakes.parquet.make spark     in the project's environment
"""

import json
import shutil
import sys
import tempfile
from dataclasses import fields
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from signalbox.history.event import HistoryEvent
from tests.fakes.parquet import DAY, HERE, INCOMPLETE_ROW, INDEXED_EVENTS, sample_events

NUMBERS = dict.fromkeys(("version", "attempt"), "INTEGER") | dict.fromkeys(
    ("sequence", "size_bytes", "latency_ms"), "BIGINT"
)
OTHERS = {"occurred_at": "TIMESTAMP", "labels": "MAP(VARCHAR, VARCHAR)"}


def with_duckdb() -> None:
    """Write raw files as the emulator's Firehose does (`_convert_to_parquet` in MiniStack)."""
    import duckdb  # noqa: PLC0415 - is in the emulator's environment only

    documents = [*(json.loads(event.to_json()) for event in sample_events()), INCOMPLETE_ROW]
    names = ["version", *(field.name for field in fields(HistoryEvent))]
    columns = ", ".join(f'"{name}" {(NUMBERS | OTHERS).get(name, "VARCHAR")}' for name in names)
    database = duckdb.connect()
    database.execute(f"CREATE TABLE t ({columns})")
    places = ", ".join("?" for _ in names)
    rows = [[document.get(name) for name in names] for document in documents]
    database.executemany(f"INSERT INTO t VALUES ({places})", rows)  # noqa: S608 - question marks
    for codec in ("gzip", "snappy", "uncompressed"):
        database.execute(f"COPY t TO '{HERE}/duckdb-{codec}.parquet' (FORMAT PARQUET, COMPRESSION {codec})")


def with_spark() -> None:
    """Write raw files and an index with Spark.

    Its library and types of Parquet are those of Hive, and so of Firehose on AWS.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - is in the project's environment only

    from glue_jobs.shared.arguments import TimeWindow  # noqa: PLC0415 - the same
    from glue_jobs.shared.event_index import EventIndex  # noqa: PLC0415 - the same
    from glue_jobs.shared.lake import Lake  # noqa: PLC0415 - the same
    from glue_jobs.transforms.events import SCHEMA  # noqa: PLC0415 - the same

    spark = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "events.json")
        lines.write_text("".join(f"{event.to_json()}\n" for event in sample_events(INDEXED_EVENTS)))
        events = spark.read.schema(SCHEMA).json(str(lines)).coalesce(1)
        incomplete = spark.createDataFrame([tuple(map(INCOMPLETE_ROW.get, SCHEMA.names))], SCHEMA)
        raw = events.limit(len(sample_events())).union(incomplete).coalesce(1)
        for codec in ("gzip", "snappy"):
            raw.write.option("compression", codec).parquet(f"{folder}/{codec}")
            (made,) = Path(folder, codec).glob("*.parquet")
            shutil.copy(made, HERE / f"spark-{codec}.parquet")
        shutil.rmtree(HERE / "index", ignore_errors=True)
        index, midnight = EventIndex(Lake(spark, "none"), f"{folder}/index"), datetime.combine(DAY, time(), UTC)
        day = TimeWindow(midnight, midnight + timedelta(days=1))
        index.add(events, day)
        index.mark_read(day, read_at=midnight + timedelta(hours=26))
        shutil.copytree(f"{folder}/index", HERE / "index", ignore=shutil.ignore_patterns(".*"))
    spark.stop()


if __name__ == "__main__":
    {"duckdb": with_duckdb, "spark": with_spark}[sys.argv[1]]()
