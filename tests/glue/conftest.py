import os
import sys
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from glue_jobs.transforms.history import SCHEMA

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    # Small frames: the C1 compiler and the serial collector start and end sooner.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    # Java options come too late once the JVM runs, so they go to what starts it.
    options = " ".join(f'--conf "{key}={value}"' for key, value in SETTINGS.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{options} pyspark-shell"
    session = SparkSession.builder.master("local[2]").appName("tests").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def history(spark: SparkSession) -> Callable[..., DataFrame]:
    """Make a frame of the raw history from rows that name only what matters."""

    def frame(*rows: dict[str, object]) -> DataFrame:
        whole = [{"version": 1, "capability": "rendezvous", "labels": {}} | row for row in rows]
        return spark.createDataFrame([tuple(row.get(name) for name in SCHEMA.names) for row in whole], SCHEMA)

    return frame


@pytest.fixture(scope="session")
def at() -> Callable[[str], datetime]:
    """Read a UTC moment as Spark takes it in: its frames are made from times with a zone."""
    return lambda text: datetime.fromisoformat(f"{text}+00:00")
