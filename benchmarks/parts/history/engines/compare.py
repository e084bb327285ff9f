"""A comparison of two engines' tables, row by row: `python compare.py ONE OTHER`, folders of all tables."""

import json
import sys
from pathlib import Path

import duckdb

TABLES = ("events", "rendezvous_daily", "split_daily", "topic_hourly", "delivery_hourly", "order_audit")


def main(one: str, other: str) -> None:
    """Print the number of rows of each table, and the numbers that occur in only one folder."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'; SET threads = 2")
    for table in TABLES:
        if not (Path(one, table).exists() or Path(one, f"{table}.parquet").exists()):
            continue
        order = ", ".join(_columns(database, one, table))
        left, right = (_query(database, folder, table, order=order) for folder in (one, other))
        rows, extra, missing = (
            database.execute(f"SELECT count(*) FROM ({query})").fetchone()[0]
            for query in (left, f"({left}) EXCEPT ALL ({right})", f"({right}) EXCEPT ALL ({left})")
        )
        print(json.dumps({"table": table, "rows": rows, "only_one": extra, "only_other": missing}))


def _query(database: duckdb.DuckDBPyConnection, folder: str, table: str, *, order: str) -> str:
    columns = ", ".join(f"{how} AS {name}" for name, how in _columns(database, folder, table).items())
    return f"SELECT {order} FROM (SELECT {columns} FROM {_files(folder, table)})"


def _files(folder: str, table: str) -> str:
    pattern = (
        f"{folder}/{table}.parquet" if Path(f"{folder}/{table}.parquet").exists() else f"{folder}/{table}/**/*.parquet"
    )
    return f"read_parquet('{pattern}', hive_partitioning = false)"


def _columns(database: duckdb.DuckDBPyConnection, folder: str, table: str) -> dict[str, str]:
    """Return the compared expression of each column: numbers and times as integers, labels as sorted entries."""
    described = database.execute(f"DESCRIBE SELECT * FROM {_files(folder, table)}").fetchall()
    return {name: _compared(name, kind) for name, kind, *_ in described if (table, name) != ("events", "day")}


def _compared(name: str, kind: str) -> str:
    if kind.startswith("MAP"):
        return f"list_sort(map_entries({name}))"
    if kind.startswith("TIMESTAMP"):
        return f"epoch_us({name}::TIMESTAMPTZ)"
    return f"{name}::BIGINT" if "INT" in kind else name


if __name__ == "__main__":
    main(*sys.argv[1:])
