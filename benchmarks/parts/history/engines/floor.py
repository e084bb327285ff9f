"""The lower bound of all engines, one read of every column of raw history: `python floor.py RAW FORMAT`."""

import sys

import duckdb
from in_duckdb import TYPES, source


def main(raw: str, file_format: str) -> None:
    """Read and hash all columns."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'; SET threads = 2")
    columns = ", ".join(name for name in TYPES if name != "labels")
    database.execute(f"SELECT bit_xor(hash({columns}, map_entries(labels))) FROM {source(raw, file_format)}").fetchall()


if __name__ == "__main__":
    main(*sys.argv[1:])
