"""The tables of history computed with DuckDB, with the time of each: `python in_duckdb.py RAW FORMAT OUT`."""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

STARTED = time.perf_counter()
TYPES = {
    "version": "INTEGER",
    "event_id": "VARCHAR",
    "occurred_at": "TIMESTAMPTZ",
    **dict.fromkeys(("capability", "kind", "outcome", "reason", "message_id", "topic"), "VARCHAR"),
    "sequence": "BIGINT",
    **dict.fromkeys(("source", "destination"), "VARCHAR"),
    **dict.fromkeys(("size_bytes", "latency_ms"), "BIGINT"),
    "attempt": "INTEGER",
    "labels": "MAP(VARCHAR, VARCHAR)",
}
SPLIT_TOTALS = [
    *(("routed-total", outcome) for outcome in ("session", "deployed", "copied")),
    *(("returned-total", outcome) for outcome in ("session", "deployed", "original")),
    ("dead_letter-total", "dead"),
    *(("session-total", outcome) for outcome in ("started", "ready", "ended")),
]
COUNT_LINES = (
    *(f"snowflake-ips-{kind}" for kind in ("standalone", "webext", "badge", "iptproxy", "bloco", "total")),
    *("snowflake-idle-count", "snowflake-proxy-poll-with-relay-url-count"),
    *("snowflake-proxy-poll-without-relay-url-count", "snowflake-proxy-rejected-for-relay-url-count"),
    *("client-denied-count", "client-restricted-denied-count", "client-unrestricted-denied-count"),
    *("client-snowflake-match-count", "client-snowflake-timeout-count"),
    *(f"client-{method}-count" for method in ("http", "ampcache", "sqs")),
    *(f"snowflake-ips-nat-{nat}" for nat in ("restricted", "unrestricted", "unknown")),
)
TIMES_BY = {"": "NULL", "by-nat-": "nat", "by-country-": "country", "by-proxy-type-": "proxy_type"}


def reports() -> dict[str, str]:
    """Return the query of each table."""
    times = " UNION ALL ".join(
        f"SELECT day, 'time-to-answer-ms-{group}' || unnest(['p50', 'p95', 'p99']), {label} AS label,"
        " round(round(unnest(quantile_cont(latency_ms, [0.5, 0.95, 0.99])), 6))::BIGINT"
        " FROM facts WHERE kind = 'answer' AND latency_ms IS NOT NULL GROUP BY day, label"
        for group, label in TIMES_BY.items()
    )
    return {
        "rendezvous_daily": _sql("rendezvous_daily").format(times=times, count_lines=list(COUNT_LINES)),
        "split_daily": _sql("split_daily").format(totals=", ".join(map(str, SPLIT_TOTALS))),
        "topic_hourly": _sql("topic_hourly"),
        "delivery_hourly": _sql("delivery_hourly"),
        "order_audit": _sql("order_audit"),
    }


def _sql(name: str) -> str:
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text()


def source(raw: str, file_format: str) -> str:
    """Return the raw files as an SQL table expression."""
    if file_format == "parquet":
        return f"read_parquet('{raw}/*/*/*.parquet', hive_partitioning = false)"
    types = ", ".join(f"{name}: '{kind}'" for name, kind in TYPES.items())
    form = "format = 'newline_delimited', hive_partitioning = false"
    return f"read_json('{raw}/*/*/*.json.gz', columns = {{{types}}}, {form})"


def main(raw: str, file_format: str, out: str) -> None:
    """Compute all tables into `OUT/<table>`."""
    Path(out).mkdir(parents=True)
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false; SET threads = 2")
    names = ", ".join(TYPES)
    tie = f"hash({', '.join(name for name in TYPES if name != 'labels')}, map_entries(labels))"
    query = _sql("events").format(columns=names, tie=tie, raw=source(raw, file_format), out=out)
    before = _timed("events", STARTED, partial(database.execute, query))
    made = f"read_parquet('{out}/events/*/*.parquet', hive_partitioning = true)"
    database.execute(f"CREATE VIEW events AS SELECT * REPLACE (CAST(day AS DATE) AS day) FROM {made}")
    for name, report in reports().items():
        copy = f"COPY ({report}) TO '{out}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)"
        before = _timed(name, before, partial(database.execute, copy))


def _timed(name: str, before: float, work: Callable[[], object]) -> float:
    work()
    now = time.perf_counter()
    print(json.dumps({"name": name, "seconds": now - before}), flush=True)
    return now


if __name__ == "__main__":
    main(*sys.argv[1:])
