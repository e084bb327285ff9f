"""The benchmark of rendezvous against upstream's broker on one emulator: `python -m benchmarks.rendezvous`."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace

from benchmarks.parts.rendezvous import calls, coldstart, kills, original, robustness, timing, wake
from benchmarks.parts.rendezvous.clients import Clients, our_clients, real_clients
from benchmarks.parts.rendezvous.original import NoGo, Programs
from benchmarks.parts.rendezvous.report import Results, headlines, tables, targets
from benchmarks.shared.command import parser, status
from benchmarks.shared.headlines import keep
from benchmarks.shared.machine import this_machine
from benchmarks.shared.report import show
from benchmarks.shared.stage import Stage, running_stage
from signalbox.cli.shared.output import print_error, print_json
from signalbox.local.progress import step

PARTS = ("wake", "times", "calls", "robustness", "kills", "coldstart")


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    options = _options(arguments)
    return status(lambda: _print(_measured(options), options))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options = parser("rendezvous", __doc__, parts=PARTS, page="docs/rendezvous.md")
    options.add_argument("--rounds", type=int, default=timing.ROUNDS, help="rounds of the times (default: %(default)s)")
    options.add_argument(
        "--idle-seconds", type=float, default=120, help="seconds of counting idle calls (default: 120)"
    )
    options.add_argument(
        "--kill-rounds", type=int, default=kills.Plan().rounds, help="rounds of ten clients (default: %(default)s)"
    )
    options.add_argument("--slow", action="store_true", help="also measure upstream with a silent proxy (4 minutes)")
    return options.parse_args(arguments)


def _measured(options: argparse.Namespace) -> Results:
    programs = _programs()
    machine = this_machine(upstream=programs.versions if programs else None)
    parts = set(options.only or PARTS)
    cold_start = None
    if "coldstart" in parts:
        with step("cold starts") as say:
            cold_start = coldstart.measure(say)
    results = Results(machine, {}, {}, {}, None, cold_start)
    if parts == {"coldstart"}:
        return results
    clients = real_clients(programs.client) if programs else our_clients
    if "wake" in parts:
        # On a separate stage: no function may have an instance.
        with running_stage(port=options.port) as stage, step("wake") as say:
            results = replace(results, wake=wake.measure(stage.signalbox(), clients, say))
    if parts & {"times", "robustness"}:
        with running_stage(port=options.port) as stage:
            results = _on_stage(stage, programs, clients, options, results=results, parts=parts)
    if "calls" in parts:
        # On a separate stage: the later cleanup of the other parts would be counted here.
        with running_stage(port=options.port) as stage, step("SQS calls") as say:
            counted = calls.count(stage, programs, clients, idle_seconds=options.idle_seconds, say=say)
        results = replace(results, calls=counted)
    if "kills" in parts:
        with running_stage(port=options.port) as stage, step("kills") as say:
            survived = kills.measure(stage, clients, kills.Plan(rounds=options.kill_rounds), say)
        results = replace(results, kills=survived)
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
        if "times" in parts:
            with step("times") as say:
                timings = timing.measure(sides, clients, plan=timing.Plan(rounds=options.rounds), say=say)
            results = replace(results, timings=timings)
        if "robustness" in parts:
            with step("robustness") as say:
                results = replace(results, robustness=robustness.measure(sides, clients, slow=options.slow, say=say))
    return results


def _print(results: Results, options: argparse.Namespace) -> None:
    keep("rendezvous", headlines(results), results.machine)
    if options.json:
        print_json(asdict(results))
        return
    show(tables(results), targets(results), machine=results.machine, as_document=options.markdown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
