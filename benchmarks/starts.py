"""The benchmark of the functions' imports, with and without bytecode: `python -m benchmarks.starts [--folder PATH]`."""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.parts.starts.imports import Import, assets_of, measure
from benchmarks.shared.command import parser, status
from benchmarks.shared.figures import ratio
from benchmarks.shared.headlines import Headline, keep
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table, show
from benchmarks.shared.runtime import link_runtime
from signalbox.cli.shared.output import print_json
from signalbox.local.files import CHECKOUT
from signalbox.local.progress import step

PARTS = ("imports",)
HERE, THERE = "this version", "the other version"
ROUNDS = 7
# Processor milliseconds; a client waits for `offer`, and no longer than that for the others.
LIMITS = {"rendezvous.offer": 100.0}
LIMIT = 120.0


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run: of each function the import on each side, in the same order."""

    machine: Machine
    imports: Mapping[str, Sequence[Import]]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    made = parser("starts", __doc__, parts=PARTS, page="benchmarks/README.md")
    made.add_argument("--folder", type=Path, help="a checkout of another version, after its setup, to compare")
    made.add_argument("--rounds", type=int, default=ROUNDS, help="rounds (default: %(default)s)")
    options = made.parse_args(arguments)
    return status(lambda: _print(_measured(options), options))


def _measured(options: argparse.Namespace) -> Results:
    command = " ".join(["python -m benchmarks.starts", *sys.argv[1:]])
    machine = replace(this_machine(upstream=None), command=command)
    with TemporaryDirectory() as folder, step("imports") as say:
        runtime, compared = Path(folder, "runtime"), Path(folder, "source")
        for path in (runtime, compared):
            path.mkdir()
        link_runtime(runtime)
        sides = [assets_of(HERE, CHECKOUT)]
        sides.append(sides[0].without_bytecode(compared))
        if options.folder:
            sides.append(assets_of(THERE, options.folder.resolve()))
        return Results(machine, measure(sides, runtime, rounds=options.rounds, say=say))


def tables(results: Results) -> Iterator[Table]:
    """Yield the table of the imports."""
    names = [one.assets for one in next(iter(results.imports.values()))]
    rows = [
        [
            name,
            *(f"{one.median:.0f}" for one in sides),
            f"{sides[0].median_of_rest:.0f}",
            *(ratio(sides[0].median, one.median) for one in sides[1:]),
        ]
        for name, sides in results.imports.items()
    ]
    columns = [
        "function",
        *(f"ms, {name}" for name in names),
        "ms beyond the SDK",
        *(f"times {name}" for name in names[1:]),
    ]
    note = (
        "Processor milliseconds of the import, with botocore, and boto3 where a function uses it: medians of "
        "alternating rounds in new interpreters. Beyond the SDK is what ships."
    )
    yield Table("Imports of the functions", columns, rows, note)


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield each limit, and whether the run kept it."""
    for name, (ours, *_) in results.imports.items():
        limit = LIMITS.get(name, LIMIT)
        found = f"{ours.median:.0f}, beyond the SDK {ours.median_of_rest:.0f}"
        yield f"{name} is imported in at most {limit:.0f} ms ({found})", ours.median <= limit


def headlines(results: Results) -> Iterator[Headline]:
    """Yield the figures of the slowest function, and of bytecode."""
    ours = {name: sides[0].median for name, sides in results.imports.items()}
    slowest = max(ours, key=lambda name: ours[name])
    rest = results.imports[slowest][0].median_of_rest
    text = f"`{slowest}`: {ours[slowest]:.0f} ms, {rest:.0f} beyond the SDK"
    yield Headline("import of the slowest function", text, f"{LIMIT:.0f} ms")
    shares = [sides[0].median / sides[1].median for sides in results.imports.values()]
    yield Headline("import with bytecode, times without", f"{statistics.median(shares):.2f}")


def _print(results: Results, options: argparse.Namespace) -> None:
    keep("starts", headlines(results), results.machine)
    if options.json:
        print_json(asdict(results))
        return
    show(tables(results), targets(results), machine=results.machine, as_document=options.markdown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
