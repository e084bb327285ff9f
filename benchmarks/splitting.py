"""Measures splitting: SQS calls, filters next to a plain loop, latency: `python -m benchmarks.splitting`."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.parts.splitting import calls as splitting_calls
from benchmarks.parts.splitting import filters as splitting_filters
from benchmarks.parts.splitting import latency as splitting_latency
from benchmarks.parts.splitting import times as splitting_times
from benchmarks.parts.splitting import waits as splitting_waits
from benchmarks.parts.splitting.calls import FLOOR, MESSAGES, Calls
from benchmarks.parts.splitting.filters import Filters
from benchmarks.parts.splitting.times import Times
from benchmarks.parts.splitting.waits import Waits
from benchmarks.shared.command import Part, parser, run
from benchmarks.shared.figures import Summary
from benchmarks.shared.machine import this_machine
from benchmarks.shared.report import Table
from benchmarks.shared.stage import running_stage
from signalbox.local.progress import Say
from signalbox.queues import is_fifo

# The defaults on AWS, in place of a local stage's settings.
AWS_SETTINGS = ("split_timeout_seconds=10", "split_empty_seconds=60", "split_parameter_seconds=60")
CALLS_LIMIT = 1.1


def _calls(calls: Sequence[Calls]) -> Iterator[Table]:
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
    yield Table(f"SQS calls for {MESSAGES:,} messages", columns, rows, note)


def _name(calls: Calls) -> str:
    case = calls.case
    groups = f" of {case.groups} group{'s' if case.groups > 1 else ''}" if case.groups else ""
    return f"{'FIFO' if case.groups else 'standard'}{groups}, {_sessions(case.sessions)}"


def _sessions(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"


def _filters(filters: Sequence[Filters]) -> Iterator[Table]:
    columns = ["filter evaluations per second", "Signalbox", "plain loop over `re`", "ratio"]
    rows = [[_sessions(one.sessions), f"{one.ours:,.0f}", f"{one.plain:,.0f}", f"{one.ratio:.2f}"] for one in filters]
    note = "Messages that no session claims, so that all filters run; medians of alternating rounds."
    yield Table("Filters", columns, rows, note)


def _latency(latency: Mapping[str, Summary]) -> Iterator[Table]:
    columns = ["milliseconds from sender to consumer", "median", "p95", "longest"]
    rows = [[way, f"{one.median:.0f}", f"{one.p95:.0f}", f"{one.maximum:.0f}"] for way, one in latency.items()]
    some = next(iter(latency.values()))
    note = (
        f"{some.count} messages of each route, one after another. The local consumer polls without pause; the "
        "deployed one is a function with an event source mapping. A split adds one more such mapping."
    )
    yield Table("Time to a consumer, on the emulator", columns, rows, note)


def _waits(waits: Sequence[Waits]) -> Iterator[Table]:
    columns = ["settings, queue, its session's messages", "ready", "original read again", "split over"]
    rows = [
        [
            f"{one.settings}, {'FIFO' if is_fifo(one.queue) else 'standard'}, {one.use}",
            *map(str, (one.ready, one.back, one.over)),
        ]
        for one in waits
    ]
    note = "Seconds by the rules alone, in simulated time: changes in AWS take no time. The visibility timeout is 30 s."
    yield Table("Waits of a session", columns, rows, note)


def _times(times: Sequence[Times]) -> Iterator[Table]:
    columns = ["target, its session's messages", "ready", "original read again", "split over"]
    rows = [
        [f"{one.kind}, {one.use}", *(f"{seconds:.1f}" for seconds in (one.ready, one.back, one.over))] for one in times
    ]
    yield Table("Times of a session, on the emulator", columns, rows, "Seconds from the command on.")


def _calls_targets(calls: Sequence[Calls]) -> Iterator[tuple[str, bool]]:
    limit = f"at most {CALLS_LIMIT} times the floor of SQS calls with one destination"
    single = [one for one in calls if one.case.sharing == 0 and not one.case.groups]
    yield limit, all(one.times_floor <= CALLS_LIMIT for one in single)


def _latency_on_stage(options: argparse.Namespace, say: Say) -> Mapping[str, Summary]:
    with running_stage(port=options.port) as stage:
        return splitting_latency.on_stage(stage.deployment, messages=options.messages, say=say)


def _times_on_stage(options: argparse.Namespace, say: Say) -> Sequence[Times]:
    kinds, context = options.kind or list(splitting_times.KINDS), AWS_SETTINGS if options.aws_settings else ()
    with running_stage(port=options.port, context=context) as stage:
        return list(splitting_times.on_stage(stage.deployment, kinds=kinds, say=say))


PARTS: dict[str, Part[Any]] = {
    "calls": Part(lambda _, __: list(splitting_calls.count()), _calls, _calls_targets),
    "filters": Part(lambda _, say: splitting_filters.measure(say), _filters),
    "latency": Part(_latency_on_stage, _latency),
    "waits": Part(lambda _, __: list(splitting_waits.calculate()), _waits),
    "times": Part(_times_on_stage, _times),
}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
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
    return run(options.parse_args(arguments), PARTS, this_machine("splitting"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
