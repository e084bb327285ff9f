"""A generator of raw history in the layout of Firehose: `python events.py FOLDER EVENTS DAYS`.

The output is deterministic: every value is computed from the number of its event. It has 400 topics, of
which few have most messages; one event in a hundred twice (half of these two seconds later); one message in a thousand
lost; and one in five thousand late by three seconds and so out of order.
"""

import sys
from pathlib import Path

import duckdb

FIRST_DAY = "2026-11-18"
TOPICS = 400
COLUMNS = (
    *("version", "event_id", "occurred_at", "capability", "kind", "outcome", "reason", "message_id", "topic"),
    *("sequence", "source", "destination", "size_bytes", "latency_ms", "attempt", "labels"),
)
NUMBERS = ("version", "sequence", "size_bytes", "latency_ms", "attempt")


def main(folder: str, events: int, days: int) -> None:
    """Write `FOLDER/parquet` and `FOLDER/json`, each with dt=/hour= below."""
    Path(folder).mkdir(parents=True)
    database = duckdb.connect()
    database.execute(
        "SET TimeZone = 'UTC'; SET preserve_insertion_order = false; SET partitioned_write_max_open_files = 200"
    )
    made = _sql("made").format(n=events, first=FIRST_DAY, topics=TOPICS, span=days * 86_400_000 - 5_000)
    database.execute(made)
    database.execute(_sql("raw"))
    columns = ", ".join(COLUMNS)
    into = "PARTITION_BY (dt, hour), OVERWRITE_OR_IGNORE"
    rows = f"COPY (SELECT {columns}, dt, hour FROM raw) TO '{folder}/parquet'"
    database.execute(f"{rows} (FORMAT parquet, COMPRESSION snappy, {into})")
    # One column without delimiter, quotes and header writes the line unchanged.
    database.execute(
        f"COPY (SELECT {_line()} AS line, dt, hour FROM raw) TO '{folder}/json' (FORMAT csv, HEADER false, QUOTE '',"
        f" ESCAPE '', DELIMITER '\x01', COMPRESSION gzip, FILE_EXTENSION 'json.gz', {into})"
    )


def _sql(name: str) -> str:
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text()


def _line() -> str:
    """Return the SQL of an event in the form of `HistoryEvent.to_json`, without nulls."""
    parts = []
    for name in COLUMNS[1:-1]:
        value = name if name in NUMBERS else f"'\"' || {name} || '\"'"
        if name == "occurred_at":
            value = "'\"' || strftime(occurred_at, '%Y-%m-%d %H:%M:%S.%g') || '\"'"
        parts.append(f"coalesce(',\"{name}\":' || {value}, '')")
    return f"""'{{"version":1' || {" || ".join(parts)} || ',"labels":' || to_json(labels) || '}}'"""


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
