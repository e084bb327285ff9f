"""The benchmark of rendezvous against upstream's broker on one emulator: `python -m benchmarks.rendezvous`."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.parts.rendezvous import bursts, calls, original, robustness, timing
from benchmarks.parts.rendezvous.clients import Clients, our_clients, real_clients
from benchmarks.parts.rendezvous.original import NoGo, Programs
from benchmarks.parts.rendezvous.report import Results, tables, targets
from benchmarks.shared.command import parser, report
from benchmarks.shared.machine import this_machine
from benchmarks.shared.stage import Stage, running_stage
from signalbox.cli.shared.output import print_error
from signalbox.local.progress import step

PARTS = ("first", "times", "budget", "kills", "flood", "calls", "robustness")
SHARED = {"first", "times", "kills", "robustness"}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    options = _options(arguments)
    return report(options, lambda: _measured(options), tables=tables, targets=targets)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options = parser("rendezvous", __doc__, parts=PARTS, page="docs/rendezvous.md")
    options.add_argument("--rounds", type=int, default=timing.ROUNDS, help="rounds of the times (default: %(default)s)")
    options.add_argument(
        "--idle-seconds", type=float, default=120, help="seconds of counting idle calls (default: 120)"
    )
    options.add_argument("--slow", action="store_true", help="also measure upstream with a silent proxy (4 minutes)")
    return options.parse_args(arguments)


def _measured(options: argparse.Namespace) -> Results:
    programs = _programs()
    parts = set(options.only or PARTS)
    results = Results(this_machine("rendezvous", upstream=programs.versions if programs else None), {}, {}, {})
    clients = real_clients(programs.client) if programs else our_clients
    if parts & SHARED:
        with running_stage(port=options.port, context=(bursts.URLS,)) as stage:
            results = _on_stage(stage, programs, clients, options, results=results, parts=parts)
    if "budget" in parts:
        with step("a larger budget") as say:
            timings = bursts.at_large_budget(clients, port=options.port, rounds=options.rounds, say=say)
        results = replace(results, at_large_budget=timings)
    if "flood" in parts:
        with step("a flood of polls"):
            results = replace(results, flood=bursts.flood(port=options.port))
    if "calls" in parts:
        # On a separate stage: the later cleanup of the other parts would be counted here.
        with running_stage(port=options.port, context=(bursts.URLS,)) as stage, step("SQS calls") as say:
            counted = calls.count(stage, programs, clients, idle_seconds=options.idle_seconds, say=say)
        results = replace(results, calls=counted)
    return results


def _programs() -> Programs | None:
    try:
        with step("build upstream's programs"):
            return original.build()
    except NoGo as error:
        print_error(f"no comparison with upstream, and Signalbox's client instead of upstream's: {error}")
        return None


def _on_stage(
    stage: Stage,
    programs: Programs | None,
    clients: Clients,
    options: argparse.Namespace,
    *,
    results: Results,
    parts: set[str],
) -> Results:
    """Run the parts that share a stage."""
    with ExitStack() as stack:
        sides = [stage.signalbox()]
        if programs is not None:
            sides.append(stack.enter_context(original.running_broker(programs, stage.upstream())))
        if "first" in parts:
            with step("the first clients"):
                results = replace(results, first=bursts.first(sides[0], clients))
        if "times" in parts:
            with step("times") as say:
                timings = timing.measure(sides, clients, plan=timing.Plan(rounds=options.rounds), say=say)
            results = replace(results, timings=timings)
        if "kills" in parts:
            with step("kills"):
                results = replace(results, killed=bursts.under_kills(sides[0], clients))
        if "robustness" in parts:
            with step("robustness") as say:
                results = replace(results, robustness=robustness.measure(sides, clients, slow=options.slow, say=say))
    return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
