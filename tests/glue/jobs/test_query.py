"""Queries with Spark, which replace Athena on the local stage."""

import json
import re
from datetime import UTC, datetime

import pytest

from glue_jobs import query
from glue_jobs.transforms.tables import EVENTS, TABLES
from tests.docs.markdown import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.release]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def ask(lake, tmp_path, sql: str) -> dict[str, list]:
    output = tmp_path / "answer.json"
    options = {"database": lake.database, "history_path": str(tmp_path / "raw"), "query": sql, "output": str(output)}
    query.main(["query.py", *(word for name, text in options.items() for word in (f"--{name}", text))])
    return json.loads(output.read_text())


def test_values_are_text_as_in_athena_and_column_names_may_be_equal(lake, history, tmp_path):
    lake.ensure(EVENTS.name)
    lake.merge_events(history({"event_id": "1", "occurred_at": NOON, "kind": "offer", "sequence": 7}))

    found = ask(lake, tmp_path, "SELECT kind, sequence, reason, kind FROM events")

    assert found == {"columns": ["kind", "sequence", "reason", "kind"], "rows": [["offer", "7", None, "offer"]]}


def test_raw_events_are_queried_by_day_with_or_without_the_database(lake, history, tmp_path):
    lake.ensure(EVENTS.name)
    rows = history({"event_id": "1", "occurred_at": NOON, "kind": "offer"})
    rows.write.parquet(str(tmp_path / "raw" / "dt=2026-11-20" / "hour=12"))

    for name in ("events_raw", f"{lake.database}.events_raw"):
        sql = f"SELECT dt, hour, kind FROM {name} WHERE dt >= '2026-11-20'"  # noqa: S608 - ours
        assert ask(lake, tmp_path, sql)["rows"] == [["2026-11-20", "12", "offer"]]


@pytest.mark.parametrize(
    ("sql", "is_missing", "problem"),
    [
        ("SELECT * FROM event", True, "`event` cannot be found"),
        ("SELECT * FROM events_raw", True, "Path does not exist"),
        ("SELECT knd FROM events", False, "`kind`"),
        ("SELECT ((", False, "Syntax error"),
    ],
)
def test_a_query_that_cannot_run_has_its_reason_in_one_line(lake, tmp_path, sql, is_missing, problem):
    lake.ensure(EVENTS.name)

    answer = ask(lake, tmp_path, sql)

    assert answer["is_missing"] is is_missing
    assert answer["tables"] == [EVENTS.name]
    assert problem in answer["problem"]
    assert "\n" not in answer["problem"]
    assert "Project" not in answer["problem"]


def test_every_query_of_the_history_page_is_valid_in_spark(lake, history, tmp_path):
    """Spark parses them; they use the common grammar of Athena and Spark."""
    for table in TABLES:
        lake.ensure(table)
    history({"event_id": "1", "occurred_at": NOON}).write.parquet(str(tmp_path / "raw" / "dt=2026-11-20" / "hour=12"))
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "history.md").read_text(), re.DOTALL)

    for text in queries:
        asked = text.strip().rstrip(";").replace("signalbox_lake.", f"{lake.database}.")
        assert ask(lake, tmp_path, asked)["columns"], text
    assert len(queries) > 10
