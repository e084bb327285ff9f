"""The benchmark of a local stage's set-up in two versions: `python -m benchmarks.setup --folder PATH`."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.parts.setup import ups
from benchmarks.shared.command import parser, status
from benchmarks.shared.figures import ratio
from benchmarks.shared.headlines import Headline, keep
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table, show
from signalbox.cli.shared.output import print_json
from signalbox.errors import UnavailableError
from signalbox.local.files import CHECKOUT
from signalbox.local.progress import step

PARTS = ("ups",)
HERE, THERE = "this version", "the other version"
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Ups:
    """The start of a stage on one side: seconds of the clock and of processors, round by round."""

    side: str
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run: by name of what was measured, each side's in the same order."""

    machine: Machine
    ups: Mapping[str, Sequence[Ups]]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    made = parser("setup", __doc__, parts=PARTS, page="benchmarks/README.md")
    made.add_argument("--folder", type=Path, required=True, help="a checkout of the other version, after its setup")
    made.add_argument("--rounds", type=int, default=ROUNDS, help="rounds (default: %(default)s)")
    options = made.parse_args(arguments)
    return status(lambda: _print(_measured(options), options))


def _measured(options: argparse.Namespace) -> Results:
    command = " ".join(["python -m benchmarks.setup", *sys.argv[1:]])
    machine = replace(this_machine(upstream=None), command=command)
    with step("set-up") as say:
        return Results(machine, _ups({HERE: CHECKOUT, THERE: options.folder.resolve()}, options.rounds, say))


def _ups(checkouts: Mapping[str, Path], rounds: int, say: Callable[[str], None]) -> Mapping[str, list[Ups]]:
    found: dict[str, list[Ups]] = {}
    for number in range(rounds + 1):
        for name in list(checkouts)[:: 1 if number % 2 else -1]:
            say(f"round {number} of {rounds}: {name}")
            for taken in _taken(checkouts[name]):
                sides = found.setdefault(taken["name"], [Ups(side) for side in checkouts])
                if number:  # the first round builds the assets and the bytecode
                    (side,) = (one for one in sides if one.side == name)
                    side.seconds.append(taken["seconds"])
                    side.processor_seconds.append(taken["processor_seconds"])
    return found


def _taken(checkout: Path) -> list[dict[str, Any]]:
    """Start a new stage with the code of a checkout, and again; return the measurements."""
    with TemporaryDirectory(prefix="signalbox-setup-") as folder:
        done = subprocess.run(
            [str(checkout / ".venv" / "bin" / "python"), ups.__file__, str(Path(folder, "stage"))],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise UnavailableError(f"the stage of {checkout} did not start:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def tables(results: Results) -> Iterator[Table]:
    """Yield the table of the set-up."""
    columns = ["stage", "version", "processor seconds", "seconds", "processor, times the other version"]
    rows = [
        [
            name,
            one.side,
            f"{statistics.median(one.processor_seconds):.1f}",
            f"{statistics.median(one.seconds):.1f}",
            _processor_ratio(one, sides[1]),
        ]
        for name, sides in results.ups.items()
        for one in sides
    ]
    note = (
        "From the command until clients can use the stage, without the demo: medians of alternating rounds. "
        "Processor seconds include the emulator and its functions."
    )
    yield Table("Set-up of a local stage", columns, rows, note)


def _processor_ratio(one: Ups, other: Ups) -> str:
    return ratio(statistics.median(one.processor_seconds), statistics.median(other.processor_seconds))


def headlines(results: Results) -> Iterator[Headline]:
    """Yield the processor seconds of each measured set-up."""
    for name, (ours, theirs) in results.ups.items():
        mine, other = (f"{statistics.median(one.processor_seconds):.1f} s" for one in (ours, theirs))
        yield Headline(f"set-up, {name}: processor", mine, f"{other} in the version before")


def _print(results: Results, options: argparse.Namespace) -> None:
    keep("setup", headlines(results), results.machine)
    if options.json:
        print_json(asdict(results))
        return
    show(tables(results), (), machine=results.machine, as_document=options.markdown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
