"""Tables that the Glue catalog has forgotten: registered again with their data, whose files no maintenance removes."""

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from time import time
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from glue_jobs.compact_history import main
from glue_jobs.shared.lake import CATALOG, Lake
from glue_jobs.shared.maintenance import SharedPathError, maintain
from glue_jobs.transforms.events import SCHEMA
from glue_jobs.transforms.tables import EVENTS
from signalbox.local.spark.jobs import ICEBERG_SETTINGS
from tests.glue.frames import frame
from tests.glue.glue_endpoint import REGION, glue_endpoint

pytestmark = pytest.mark.spark

SETTING = f"spark.sql.catalog.{CATALOG}"
DAY = "2026-11-21"


@pytest.fixture(scope="module")
def glue_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with the catalog of the jobs in AWS; files are in folders of this machine."""
    system = spark.sparkContext._jvm.java.lang.System
    for name in ("aws.accessKeyId", "aws.secretAccessKey"):
        system.setProperty(name, "any")
    with glue_endpoint() as url:
        session = spark.newSession()
        session.conf.unset(f"{SETTING}.type")
        for name, value in {
            "catalog-impl": ICEBERG_SETTINGS[f"{SETTING}.catalog-impl"],
            "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            "glue.endpoint": url,
            "client.region": REGION,
        }.items():
            session.conf.set(f"{SETTING}.{name}", value)
        yield session


@pytest.fixture
def lake(glue_session, tmp_path, monkeypatch) -> Lake:
    """An empty lake in the Glue catalog, with the session that jobs get."""
    monkeypatch.setattr(SparkSession, "_instantiatedSession", glue_session)
    return database(glue_session, tmp_path)


def database(session: SparkSession, path) -> Lake:
    """Return a lake in a new database over the files under a path."""
    found = Lake(session, f"of_{uuid4().hex}")
    session.sql(f"CREATE NAMESPACE {CATALOG}.{found.database} LOCATION '{path}/tables'")
    return found


def merge(lake: Lake, at, *ids: str) -> None:
    for event_id in ids:
        event = {"version": 1, "event_id": event_id, "occurred_at": at(f"{DAY} 10:00:00"), "labels": {}}
        lake.merge_events(frame(lake.spark, [tuple(event.get(name) for name in SCHEMA.names)], SCHEMA))


def let_age(path) -> set[Path]:
    """Make all files older than the removal of orphan files requires, and return those of data."""
    aged = time() - 4 * 86_400  # the same for all: of metadata files of one time, the last by name is the newest
    for file in path.rglob("*"):
        os.utime(file, (aged, aged))
    return set(path.rglob("*.parquet"))


def ids(lake: Lake) -> list[str]:
    return sorted(row.event_id for row in lake.spark.table(lake.name("events")).collect())


def test_a_table_that_the_catalog_has_forgotten_keeps_its_rows(lake, at, tmp_path):
    merge(lake, at, "a", "b")

    again = database(lake.spark, tmp_path)
    merge(again, at, "c")

    assert ids(again) == ["a", "b", "c"]


def test_compaction_registers_the_forgotten_tables_of_all_jobs_and_makes_no_others(lake, at, tmp_path):
    merge(lake, at, "a")
    lake.ensure("cost_daily")

    again = database(lake.spark, tmp_path)
    main(["", "--history_path", f"{tmp_path}/raw", "--database", again.database, "--day", DAY, "--maintain", "no"])

    tables = {row.tableName for row in again.spark.sql(f"SHOW TABLES IN {CATALOG}.{again.database}").collect()}
    assert tables == {"events", "cost_daily"}
    assert ids(again) == ["a"]


def test_orphan_files_of_a_path_with_an_older_table_are_not_removed(lake, at, tmp_path):
    merge(lake, at, "a")
    files = let_age(tmp_path)
    young = database(lake.spark, tmp_path)
    for statement in (EVENTS.create_statement, EVENTS.ordering_statement):
        young.spark.sql(statement(young.name("events")))

    with pytest.raises(SharedPathError, match="no unreferenced files of events were removed"):
        maintain(young)

    assert set(tmp_path.rglob("*.parquet")) == files


def test_orphan_files_of_a_registered_table_are_removed(lake, at, tmp_path):
    merge(lake, at, "a")
    (data,) = let_age(tmp_path)
    copyfile(data, data.with_name("orphan.parquet"))
    let_age(tmp_path)
    again = database(lake.spark, tmp_path)
    again.register_tables()

    maintain(again)

    assert set(tmp_path.rglob("*.parquet")) == {data}
    assert ids(again) == ["a"]
