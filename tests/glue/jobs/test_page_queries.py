"""The queries of docs/history.md run with Spark on the tables of the jobs."""

import re
from pathlib import Path

import pytest

from glue_jobs.shared.lake import Lake
from glue_jobs.transforms.tables import TABLES
from tests.glue.frames import new_lake

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[3] / "docs" / "history.md"
DATABASE = "signalbox_lake"
RAW = "events_raw"  # Firehose's table, which no job creates
QUERIES = [query for query in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL) if RAW not in query]


@pytest.fixture(scope="module")
def tables(spark) -> Lake:
    lake = new_lake(spark, "of_questions")
    for table in TABLES:
        lake.ensure(table)
    return lake


def test_the_page_has_queries_of_each_report():
    asked = "".join(QUERIES)

    assert [table for table in TABLES if f"{DATABASE}.{table}" not in asked and not table.startswith("log")] == []


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: " ".join(query.split())[:60])
def test_a_query_of_the_page_runs(tables, query):
    found = tables.spark.sql(query.replace(DATABASE, tables.name("")[:-1])).collect()

    assert found == []
