"""Frames of a few literal rows, created in the JVM: rows from Python would cost a process in each action."""

import json
from collections.abc import Iterable, Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from glue_jobs.shared.lake import CATALOG, Lake


def frame(spark: SparkSession, rows: Iterable[Sequence[object]], schema: StructType | str) -> DataFrame:
    """Return a frame of rows; a schema as text has comma-separated columns, each a name and a simple type."""
    is_words = isinstance(schema, str)
    names = [column.split()[0] for column in schema.split(",")] if is_words else schema.names
    kind = f"array<struct<{schema}>>" if is_words else f"array<{schema.simpleString()}>"
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=_text)
    return spark.range(1).select(F.inline(F.from_json(F.lit(text), kind, {"mode": "FAILFAST"})).alias(*names))


def _text(value: object) -> str:
    if isinstance(value, date):  # also matches datetime
        return value.isoformat()
    raise TypeError(f"no frame of a test holds a {type(value).__name__}")


def new_lake(spark: SparkSession, database: str) -> Lake:
    """Return an empty history lake in a new database."""
    spark.sql(f"CREATE NAMESPACE {CATALOG}.{database}")
    return Lake(spark, database)
