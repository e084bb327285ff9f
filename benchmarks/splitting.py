"""Measures splitting: SQS calls, filters next to a plain loop, latency: `python -m benchmarks.splitting`."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.parts.splitting import calls as splitting_calls
from benchmarks.parts.splitting import filters as splitting_filters
from benchmarks.parts.splitting import latency as splitting_latency
from benchmarks.parts.splitting import times as splitting_times
from benchmarks.parts.splitting import waits as splitting_waits
from benchmarks.parts.splitting.calls import FLOOR, MESSAGES, Calls
from benchmarks.parts.splitting.filters import Filters
from benchmarks.parts.splitting.times import Times
from benchmarks.parts.splitting.waits import Waits
from benchmarks.shared.command import parser, report
from benchmarks.shared.figures import Summary
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table
from benchmarks.shared.stage import running_stage
from signalbox.local.progress import step
from signalbox.queues import is_fifo

PARTS = ("calls", "filters", "latency", "waits", "times")
# The defaults on AWS, in place of a local stage's settings.
AWS_SETTINGS = ("split_timeout_seconds=10", "split_empty_seconds=60", "split_parameter_seconds=60")
CALLS_LIMIT = 1.1


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run."""

    machine: Machine
    calls: Sequence[Calls] = ()
    filters: Sequence[Filters] = ()
    latency: Mapping[str, Summary] = field(default_factory=dict)
    waits: Sequence[Waits] = ()
    times: Sequence[Times] = ()


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    options = _options(arguments)
    return report(options, lambda: _measured(options), tables=tables, targets=targets)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options = parser("splitting", __doc__, parts=PARTS, page="docs/splitting.md")
    options.add_argument(
        "--messages", type=int, default=splitting_latency.MESSAGES, help="messages of each way (default: %(default)s)"
    )
    options.add_argument(
        "--aws-settings", action="store_true", help="measure `times` with the defaults on AWS: about 20 minutes"
    )
    options.add_argument(
        "--kind", choices=splitting_times.KINDS, action="append", help="measure `times` of this kind only; repeatable"
    )
    return options.parse_args(arguments)


def _measured(options: argparse.Namespace) -> Results:
    parts = set(options.only or PARTS)
    results = Results(this_machine("splitting"))
    if "calls" in parts:
        with step("calls"):
            results = replace(results, calls=list(splitting_calls.count()))
    if "filters" in parts:
        with step("filters") as say:
            results = replace(results, filters=splitting_filters.measure(say))
    if "latency" in parts:
        with running_stage(port=options.port) as stage, step("latency") as say:
            latency = splitting_latency.on_stage(stage.deployment, messages=options.messages, say=say)
        results = replace(results, latency=latency)
    if "waits" in parts:
        with step("waits"):
            results = replace(results, waits=list(splitting_waits.calculate()))
    if "times" in parts:
        kinds, context = options.kind or list(splitting_times.KINDS), AWS_SETTINGS if options.aws_settings else ()
        with running_stage(port=options.port, context=context) as stage, step("times") as say:
            times = list(splitting_times.on_stage(stage.deployment, kinds=kinds, say=say))
        results = replace(results, times=times)
    return results


def tables(results: Results) -> Iterator[Table]:
    """Yield the tables of the measurements."""
    if results.calls:
        yield _calls(results.calls)
    if results.filters:
        yield _filters(results.filters)
    if results.latency:
        yield _latency(results.latency)
    if results.waits:
        yield _waits(results.waits)
    if results.times:
        yield _times(results.times)


def _calls(calls: Sequence[Calls]) -> Table:
    columns = ["queue, sessions", "destinations", "receive", "send", "delete", "all", "times the floor"]
    rows = [
        [
            _name(one),
            str(one.case.sharing + 1),
            *map(str, (one.received, one.sent, one.deleted, one.total)),
            f"{one.times_floor:.2f}",
        ]
        for one in calls
    ]
    note = (
        f"The floor is {FLOOR} calls: receive, send and delete in batches of ten. Lambda receives and deletes. The "
        "messages rotate over the destinations, which is the worst case for a batch of ten. In a FIFO queue no call "
        "contains two messages of one group."
    )
    return Table(f"SQS calls for {MESSAGES:,} messages", columns, rows, note)


def _name(calls: Calls) -> str:
    case = calls.case
    groups = f" of {case.groups} group{'s' if case.groups > 1 else ''}" if case.groups else ""
    return f"{'FIFO' if case.groups else 'standard'}{groups}, {_sessions(case.sessions)}"


def _sessions(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"


def _filters(filters: Sequence[Filters]) -> Table:
    columns = ["filter evaluations per second", "Signalbox", "plain loop over `re`", "ratio"]
    rows = [[_sessions(one.sessions), f"{one.ours:,.0f}", f"{one.plain:,.0f}", f"{one.ratio:.2f}"] for one in filters]
    note = "Messages that no session claims, so that all filters run; medians of alternating rounds."
    return Table("Filters", columns, rows, note)


def _latency(latency: Mapping[str, Summary]) -> Table:
    columns = ["milliseconds from sender to consumer", "median", "p95", "longest"]
    rows = [[way, f"{one.median:.0f}", f"{one.p95:.0f}", f"{one.maximum:.0f}"] for way, one in latency.items()]
    some = next(iter(latency.values()))
    note = (
        f"{some.count} messages of each route, one after another. The local consumer polls without pause; the "
        "deployed one is a function with an event source mapping. A split adds one more such mapping."
    )
    return Table("Time to a consumer, on the emulator", columns, rows, note)


def _waits(waits: Sequence[Waits]) -> Table:
    columns = ["settings, queue, its session's messages", "ready", "original read again", "split over"]
    rows = [
        [
            f"{one.settings}, {'FIFO' if is_fifo(one.queue) else 'standard'}, {one.use}",
            *map(str, (one.ready, one.back, one.over)),
        ]
        for one in waits
    ]
    note = "Seconds by the rules alone, in simulated time: changes in AWS take no time. The visibility timeout is 30 s."
    return Table("Waits of a session", columns, rows, note)


def _times(times: Sequence[Times]) -> Table:
    columns = ["target, its session's messages", "ready", "original read again", "split over"]
    rows = [
        [f"{one.kind}, {one.use}", *(f"{seconds:.1f}" for seconds in (one.ready, one.back, one.over))] for one in times
    ]
    return Table("Times of a session, on the emulator", columns, rows, "Seconds from the command on.")


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield each documented target of splitting, and whether this run met it."""
    single = [one for one in results.calls if one.case.sharing == 0 and not one.case.groups]
    if single:
        limit = f"at most {CALLS_LIMIT} times the floor of SQS calls with one destination"
        yield limit, all(one.times_floor <= CALLS_LIMIT for one in single)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
