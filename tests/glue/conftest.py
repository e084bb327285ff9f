import os
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from glue_jobs.shared.lake import CATALOG, Lake
from glue_jobs.transforms.events import SCHEMA
from signalbox.local.spark.jars import jars
from signalbox.local.spark.job_runner import cache_java_names
from signalbox.local.spark.jobs import ICEBERG_SETTINGS, SMALL_DATA_SETTINGS
from tests.glue.frames import frame as literal
from tests.glue.frames import new_lake

SETTINGS = {
    **SMALL_DATA_SETTINGS,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    # For few rows, compiling a query takes longer than running it. The tests of whole jobs compile the same queries.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.bindAddress": "127.0.0.1",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session of all tests; its tables are in a folder, without Glue and S3."""
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    catalog = f"spark.sql.catalog.{CATALOG}"
    tables = {
        "spark.sql.extensions": ICEBERG_SETTINGS["spark.sql.extensions"],
        catalog: ICEBERG_SETTINGS[catalog],
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": str(tmp_path_factory.mktemp("tables")),
        "spark.driver.extraClassPath": f"{jars(print)}/*",
    }
    # Java options have no effect once the JVM runs, so they are set for its launcher.
    options = " ".join(f'--conf "{key}={value}"' for key, value in (SETTINGS | tables).items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{options} pyspark-shell"
    cache_java_names()
    session = SparkSession.builder.master("local[1]").appName("tests").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def lake(spark: SparkSession) -> Lake:
    """An empty history lake."""
    return new_lake(spark, f"of_{uuid4().hex}")


@pytest.fixture
def remembered(lake: Lake, history: Callable[..., DataFrame]) -> Callable[..., None]:
    """A function that merges events into the lake, deduplicated."""

    def put(*rows: dict[str, object]) -> None:
        lake.ensure("events")
        history(*rows).writeTo(lake.name("events")).append()

    return put


@pytest.fixture(scope="session")
def history(spark: SparkSession) -> Callable[..., DataFrame]:
    """A function that creates a frame of raw history; fields that a row omits are null."""

    def frame(*rows: dict[str, object]) -> DataFrame:
        whole = [{"version": 1, "capability": "rendezvous", "labels": {}} | row for row in rows]
        return literal(spark, [tuple(row.get(name) for name in SCHEMA.names) for row in whole], SCHEMA)

    return frame


@pytest.fixture(scope="session")
def at() -> Callable[[str], datetime]:
    """A function that parses a UTC time with a zone, as Spark's frames need it."""
    return lambda text: datetime.fromisoformat(f"{text}+00:00")
