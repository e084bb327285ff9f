"""A report job creates no table but its own: the role of each may create only the tables that it writes."""

from importlib import import_module
from pathlib import Path

import pytest

from glue_jobs.shared.lake import CATALOG, Lake
from stacks.history.jobs import DAILY

pytestmark = [pytest.mark.spark, pytest.mark.release]


@pytest.mark.parametrize("table", DAILY)
def test_a_report_on_the_first_day_is_empty_and_creates_its_own_table_only(lake: Lake, tmp_path: Path, table: str):
    script = DAILY[table][1]
    arguments = ["--database", lake.database, "--report_path", f"{tmp_path}", "--day", "2026-11-21"]

    import_module(f"glue_jobs.{script}").main([script, *arguments])

    created = {row.tableName for row in lake.spark.sql(f"SHOW TABLES IN {CATALOG}.{lake.database}").collect()}
    assert created == {table}
    assert (tmp_path / "text" / "day=2026-11-21.txt").exists()
