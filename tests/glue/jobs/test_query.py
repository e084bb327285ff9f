"""Queries with Spark, which replace Athena on the local stage."""

import json
from datetime import UTC, datetime

import pytest

from glue_jobs import query
from glue_jobs.transforms.tables import EVENTS

pytestmark = [pytest.mark.spark, pytest.mark.release]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def ask(lake, tmp_path, sql: str) -> dict[str, list]:
    output = tmp_path / "answer.json"
    options = {"database": lake.database, "history_path": str(tmp_path / "raw"), "query": sql, "output": str(output)}
    query.main(["query.py", *(word for name, text in options.items() for word in (f"--{name}", text))])
    return json.loads(output.read_text())


@pytest.fixture
def offered(lake, history):
    lake.merge_events(history({"event_id": "1", "occurred_at": NOON, "kind": "offer", "sequence": 1}))
    return lake


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
        ("SELECT raise_error('too\\nmany') FROM events", False, "RuntimeException: too"),
        ("SELECT kind RLIKE '(' FROM events", False, "Unclosed group"),
        ("SELECT * FROM events VERSION AS OF 1", False, "Cannot find snapshot with ID 1"),
    ],
)
def test_a_query_that_cannot_run_has_its_reason_in_one_line(offered, tmp_path, sql, is_missing, problem):
    answer = ask(offered, tmp_path, sql)

    assert answer["is_missing"] is is_missing
    assert answer["tables"] == [EVENTS.name]
    assert problem in answer["problem"]
    assert "\n" not in answer["problem"]
    assert "Project" not in answer["problem"]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM events",
        "WITH x AS (SELECT 1) DELETE FROM events",
        "WITH x AS (SELECT 1) INSERT INTO events SELECT * FROM events",
        "WITH x AS (SELECT 1) UPDATE events SET kind = 'x'",
        "FROM events INSERT INTO events SELECT *",
        "/* SELECT */ -- SELECT\nTRUNCATE TABLE events",
        "MERGE INTO events o USING events n ON o.event_id = n.event_id WHEN MATCHED THEN DELETE",
        "CREATE TABLE copied AS SELECT * FROM events",
        "CREATE TEMPORARY VIEW seen AS SELECT 1",
        "CREATE FUNCTION f AS 'x.Y' USING JAR '/tmp/x.jar'",
        "DROP TABLE events",
        "ALTER TABLE events CREATE BRANCH other",
        "CALL glue_catalog.system.expire_snapshots(table => 'events')",
        "SET spark.sql.runSQLOnFiles = true",
        "SET",
        "CACHE TABLE events",
        "REFRESH TABLE events",
        "USE other",
        "ADD JAR '/tmp/x.jar'",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT * FROM events",
        "SELECT TRANSFORM(kind) USING 'cat' FROM events",
        "SELECT * FROM (SELECT TRANSFORM(kind) USING 'cat' FROM events)",
        "SELECT (SELECT count(*) FROM (SELECT TRANSFORM(kind) USING 'cat' FROM events))",
        "WITH x AS (SELECT TRANSFORM(kind) USING 'cat' FROM events) SELECT * FROM x",
        "EXPLAIN DELETE FROM events",
        "SELECT 1; DELETE FROM events",
        "SELECT * FROM text.`/etc/hostname`",
        "SELECT * FROM iceberg.`/tmp/table`",
        "SELECT java_method('java.lang.System', 'getProperty', 'user.dir')",
        "SELECT reflect('java.lang.System', 'getProperty', 'user.dir')",
    ],
)
def test_statements_that_are_no_queries_are_refused_and_change_nothing(offered, tmp_path, sql):
    before = offered.snapshot(EVENTS.name)

    answer = ask(offered, tmp_path, sql)

    assert "\n" not in answer["problem"]
    assert offered.snapshot(EVENTS.name) == before
    assert [row.tableName for row in offered.spark.sql("SHOW TABLES").collect()] == [EVENTS.name]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("-- every kind\n(SELECT kind FROM events);", [["offer"]]),
        ("VALUES (1), (2)", [["1"], ["2"]]),
        ("TABLE events", 1),
        ("FROM events SELECT kind", [["offer"]]),
        ("WITH x AS (SELECT kind FROM events) SELECT * FROM x UNION ALL SELECT 'b' EXCEPT SELECT 'c'", 2),
        ("SELECT kind, key FROM events LATERAL VIEW explode(map('a', 1)) AS key, value WHERE kind LIKE 'o%'", 1),
        ("SELECT count(*) FROM events e JOIN range(3) r ON e.sequence = r.id GROUP BY kind HAVING count(*) > 0", 1),
        ("SELECT kind, row_number() OVER w FROM events WINDOW w AS (ORDER BY kind) ORDER BY kind LIMIT 5 OFFSET 0", 1),
        ("SELECT * FROM (SELECT kind FROM events) PIVOT (count(*) FOR kind IN ('offer'))", [["1"]]),
        ("SELECT /*+ BROADCAST(events) */ kind FROM events TABLESAMPLE (100 PERCENT)", 1),
        ("SELECT (SELECT max(kind) FROM events), EXISTS (SELECT 1 FROM events)", [["offer", "true"]]),
        ("SELECT operation FROM events.snapshots", 1),
        ("SELECT * FROM inline(array(struct(1, 2))) AS t(a, b)", [["1", "2"]]),
        ("SELECT '${env:PATH}'", [["${env:PATH}"]]),
        ("SHOW TABLES", 1),
        ("DESCRIBE events", len(EVENTS.schema)),
        ("EXPLAIN SELECT * FROM events", 1),
    ],
)
def test_queries_of_every_form_are_answered(offered, tmp_path, sql, rows):
    answer = ask(offered, tmp_path, sql)

    found = answer.get("rows", answer)
    assert found == rows if isinstance(rows, list) else len(found) >= rows
