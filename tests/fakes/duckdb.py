"""Queries of raw events in DuckDB, the engine of the emulator's Athena, in the emulator's own Python."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC

from signalbox.history.event import HistoryEvent
from signalbox.local.emulator.lifecycle import PYTHON
from stacks.history.lake import COLUMNS

RUN = """
import duckdb, json, sys
asked = json.load(sys.stdin)
database = duckdb.connect()
database.execute(f"CREATE TABLE events_raw ({asked['columns']})")
if asked["rows"]:
    marks = ", ".join("?" for _ in asked["rows"][0])
    database.executemany(f"INSERT INTO events_raw VALUES ({marks})", asked["rows"])
def rows_of(query):
    found = database.execute(query)
    names = [column[0] for column in found.description]
    return [dict(zip(names, (None if one is None else str(one) for one in row))) for row in found.fetchall()]
json.dump([rows_of(query) for query in asked["queries"]], sys.stdout)
"""
TYPES = {"int": "INTEGER", "bigint": "BIGINT", "timestamp": "TIMESTAMP", "map<string,string>": "MAP(VARCHAR, VARCHAR)"}


def results(queries: Sequence[str], events: Iterable[HistoryEvent]) -> list[list[dict[str, str | None]]]:
    """Return the rows of each query of `events_raw`, as Athena does: all values are text."""
    names = {name: TYPES.get(kind, "VARCHAR") for name, kind in COLUMNS.items()} | {"dt": "VARCHAR"}
    stored = []
    for event in events:
        document = json.loads(event.to_json()) | {"dt": event.occurred_at.astimezone(UTC).date().isoformat()}
        stored.append([document.get(name) for name in names])
    columns = ", ".join(f"{name} {kind}" for name, kind in names.items())
    done = subprocess.run(  # noqa: S603 - ours
        [PYTHON, "-I", "-c", RUN],
        input=json.dumps({"columns": columns, "rows": stored, "queries": list(queries)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[dict[str, str | None]]] = json.loads(done.stdout)
    return found
