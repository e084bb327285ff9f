"""The benchmark of Arvados' logs and events: `python -m benchmarks.arvados`."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.parts.arvados import on_stage, viewers
from benchmarks.parts.arvados.viewers import SECONDS, VIEWERS, Viewing
from benchmarks.shared.command import parser, report
from benchmarks.shared.figures import Summary
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table
from benchmarks.shared.stage import running_stage
from signalbox.local.progress import step

PARTS = ("viewers", "lines", "queued")
REQUESTS_LIMIT, LINE_LIMIT = 4, 300


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run."""

    machine: Machine
    viewing: Sequence[Viewing] = ()
    lines: Summary | None = None
    queued: Mapping[str, Summary] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    options = parser("arvados", __doc__, parts=PARTS, page="docs/arvados.md").parse_args(arguments)
    return report(options, lambda: _measured(options), tables=tables, targets=targets)


def _measured(options: argparse.Namespace) -> Results:
    parts = set(options.only or PARTS)
    results = Results(this_machine("arvados"))
    if "viewers" in parts:
        with step("viewers"):
            results = replace(results, viewing=viewers.measure())
    if parts - {"viewers"}:
        with running_stage(port=options.port) as stage, step("lines and containers"):
            realm = on_stage.declared_realm(stage)
            if "lines" in parts:
                results = replace(results, lines=on_stage.line_milliseconds(realm))
            if "queued" in parts:
                results = replace(results, queued=on_stage.queued_milliseconds(realm))
    return results


def tables(results: Results) -> Iterator[Table]:
    """Yield a table for each part that was measured."""
    if results.viewing:
        yield _viewing(results.viewing)
    times = {"a line, from the poll that sees it to a viewer": results.lines}
    times |= {f"a container, from Queued until {way} shows it": one for way, one in results.queued.items()}
    rows = [
        [what, str(one.count), *(f"{number:,.0f}" for number in (one.median, one.p95, one.maximum))]
        for what, one in times.items()
        if one
    ]
    if rows:
        yield Table("Times on the local stage", ["what", "number", "median ms", "p95 ms", "maximum ms"], rows)


def _viewing(viewing: Sequence[Viewing]) -> Table:
    columns = ["viewers", "requests a second", "KB a second", "ms of a processor a second", "missing lines"]
    rows = [
        [
            one.way,
            f"{one.work.requests:,.1f}",
            f"{one.work.sent_bytes / 1000:,.1f}",
            f"{one.work.processor_seconds * 1000:,.1f}",
            "-" if one.missing is None else str(one.missing),
        ]
        for one in viewing
    ]
    title = f"The work of the API server's stand-in for {VIEWERS:,} viewers of a container, in {SECONDS:.0f} s"
    return Table(title, columns, rows)


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield each promise about these figures, and whether the run kept it."""
    if results.viewing:
        reader = results.viewing[-1]
        yield f"{VIEWERS:,} viewers miss no line", not reader.missing
        yield f"at most {REQUESTS_LIMIT} requests a second for all of them", reader.work.requests <= REQUESTS_LIMIT
    if results.lines:
        yield f"at most {LINE_LIMIT} ms from a poll to a viewer (p95)", results.lines.p95 <= LINE_LIMIT
    if results.queued:
        event, listed = (one.median for one in results.queued.values())
        yield f"a dispatcher sees a container sooner by its event ({listed / event:.0f} times)", event < listed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
