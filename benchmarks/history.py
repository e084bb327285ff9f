"""Benchmark of history: the jobs against DuckDB, and lookups by id: `python -m benchmarks.history`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.parts.history import tables as history_tables
from benchmarks.parts.history import trace as history_trace
from benchmarks.parts.history.tables import DUCKDB, FLOOR, FORMATS, SPARK, Compared
from benchmarks.parts.history.trace import Traced
from benchmarks.shared.command import Part, parser, run
from benchmarks.shared.figures import ratio
from benchmarks.shared.machine import this_machine
from benchmarks.shared.processes import Measured
from benchmarks.shared.report import Table
from signalbox.local.progress import Say

EVENTS = 5_000_000
ENGINES = (DUCKDB, SPARK)
AUDIT = "order_audit"  # the part in which the engines differ most
# The result of a first trial, as a multiple of DuckDB's time for 5 million events of JSON.
SPARK_LIMIT = 4.0


def _engines(compared: Compared) -> Table:
    duckdb = compared.runs.get(DUCKDB)
    rows = [_engine(name, run, duckdb, events=compared.events) for name, run in compared.runs.items()]
    columns = ["engine", "s", "s of processors", "of DuckDB", "of DuckDB's processors"]
    columns += ["s without the audit", "of DuckDB without it", "peak GiB", "events a second"]
    counted = [f"{table} {rows:,}" for table, rows in compared.rows.items()]
    note = f"Rows compared: {', '.join(counted)}." if counted else ""
    return Table(f"{compared.events:,} events of {compared.file_format}, all tables", columns, rows, note)


def _engine(name: str, run: Measured, duckdb: Measured | None, *, events: int) -> list[str]:
    return [
        name,
        f"{run.seconds:.1f}",
        f"{run.processor_seconds:.1f}",
        ratio(run.seconds, duckdb.seconds) if duckdb else "-",
        ratio(run.processor_seconds, duckdb.processor_seconds) if duckdb else "-",
        f"{_without_audit(run):.1f}",
        ratio(_without_audit(run), _without_audit(duckdb)) if duckdb else "-",
        f"{run.peak_bytes / 2**30:.1f}",
        f"{events / run.seconds:,.0f}",
    ]


def _without_audit(run: Measured) -> float:
    return run.seconds - run.parts.get(AUDIT, 0.0)


def _parts(compared: Compared) -> Table:
    engines = [name for name in compared.runs if name != FLOOR]
    names = list(compared.runs[engines[-1]].parts)
    found = {name: list(compared.runs[name].parts.values()) for name in engines}
    rows = [
        [part, *(f"{found[name][place]:.1f}" if place < len(found[name]) else "-" for name in engines)]
        for place, part in enumerate(names)
    ]
    return Table(f"Seconds of each, {compared.file_format}", ["job", *engines], rows)


def _trace(traced: Traced) -> Iterator[Table]:
    rows = [
        [
            one.name,
            f"{one.bytes.median / 1000:,.0f}",
            f"{one.bytes.maximum / 1000:,.0f}",
            f"{one.requests.median:.0f}",
            f"{one.milliseconds.median:,.0f}",
        ]
        for one in traced.lookups
    ]
    note = f"Raw files {traced.raw_bytes / 1e6:,.0f} MB, index {traced.index_bytes / 1e6:,.0f} MB."
    columns = ["lookups", "KB, median", "KB, most", "requests", "ms without network"]
    yield Table(f"One id in a day of {traced.events:,} events", columns, rows, note)
    runs = {"without the index": traced.without_index, "with the index": traced.with_index}
    times = [[name, f"{run.seconds:.1f}", f"{run.processor_seconds:.1f}"] for name, run in runs.items()]
    yield Table(f"Compaction of {traced.events:,} events", ["run", "s", "s of processors"], times)


def _tables(found: Sequence[Compared]) -> Iterator[Table]:
    for compared in found:
        yield _engines(compared)
        yield _parts(compared)


def _promises(found: Sequence[Compared]) -> Iterator[tuple[str, bool]]:
    for compared in found:
        for engine, tables in compared.differences.items():
            yield f"{compared.file_format}: {engine} has the same rows as Spark", not any(tables.values())
        if {SPARK, DUCKDB} <= compared.runs.keys():
            ours, theirs = compared.runs[SPARK], compared.runs[DUCKDB]
            kept = ours.seconds <= SPARK_LIMIT * theirs.seconds
            yield f"{compared.file_format}: Spark takes at most {SPARK_LIMIT:g} times as long as DuckDB", kept


def _compared(options: argparse.Namespace, say: Say) -> Sequence[Compared]:
    formats, engines = options.format or FORMATS, options.engine or ENGINES
    return list(history_tables.measure(options.events, engines, formats=formats, say=say))


PARTS: dict[str, Part[Any]] = {
    "tables": Part(_compared, _tables, _promises),
    "trace": Part(lambda options, say: history_trace.measure(options.events, say), _trace),
}


def main(arguments: Sequence[str]) -> int:
    """Measure and print the results."""
    options = parser("history", __doc__, parts=PARTS, page="docs/history.md")
    options.add_argument("--events", type=int, default=EVENTS, help="raw events of the tables (default: %(default)s)")
    options.add_argument("--format", choices=FORMATS, action="append", help="only raw files of this format; repeatable")
    options.add_argument("--engine", choices=ENGINES, action="append", help="only this engine; repeatable")
    return run(options.parse_args(arguments), PARTS, this_machine("history"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
