"""The time of `make test` by check, and its cases compared with another version: `python -m benchmarks.checks`."""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.shared.command import parser, status
from benchmarks.shared.headlines import Headline, keep
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table, show
from signalbox.cli.shared.output import print_json
from signalbox.errors import UnavailableError
from signalbox.local.check import FIGURES, PARALLEL_CHECKS, PARALLEL_STAGES, REPORTS
from signalbox.local.files import CHECKOUT
from signalbox.local.progress import Say, output_of, step

PARTS = ("times", "cases")
COLLECT = ("-m", "pytest", "--collect-only", "-p", "no:cacheprovider")
CASE = re.compile(r"^tests/\S+\.py::.+$", re.MULTILINE)
LONGEST = 15


@dataclass(frozen=True, slots=True)
class Check:
    """A check of `make test`: its seconds, and those of processors."""

    name: str
    seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run."""

    machine: Machine
    checks: Sequence[Check] = ()
    longest: Mapping[str, float] = field(default_factory=dict)
    """Seconds of the longest test files."""
    cases: int = 0
    cases_there: int | None = None
    missing: Sequence[str] = ()
    """Cases of the other version that this one does not have."""


def main(arguments: Sequence[str]) -> int:
    """Run the checks, print the results and return the exit status."""
    made = parser("checks", __doc__, parts=PARTS, page="benchmarks/README.md")
    made.add_argument("--folder", type=Path, help="a checkout of another version, after its setup, for its cases")
    options = made.parse_args(arguments)
    return status(lambda: _print(_measured(options), options))


def _measured(options: argparse.Namespace) -> Results:
    command = " ".join(["python -m benchmarks.checks", *sys.argv[1:]])
    results = Results(replace(this_machine(upstream=None), command=command))
    parts = set(options.only or PARTS)
    if "times" in parts:
        with step("make test") as say:
            results = replace(results, checks=_run(say), longest=_longest(REPORTS.glob("*.xml")))
    if "cases" in parts:
        with step("cases"):
            cases = _cases(CHECKOUT)
            results = replace(results, cases=len(cases))
            if options.folder:
                there = _cases(options.folder.resolve())
                results = replace(results, cases_there=len(there), missing=sorted(there - cases))
    return results


def _run(say: Say) -> list[Check]:
    """Return the figures of each check of `make test`. Raises `UnavailableError` if one fails."""
    command = [sys.executable, "-m", "signalbox.local.check", "all"]
    failed, tail = output_of(command, folder=CHECKOUT, environment=os.environ, say=say)
    if failed:
        raise UnavailableError("\n".join(["the checks failed:", *tail]))
    return [Check(name, **figures) for name, figures in json.loads(FIGURES.read_text()).items()]


def _longest(reports: Iterable[Path]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            name = case.get("classname", "")
            seconds[name] = seconds.get(name, 0) + float(case.get("time", 0))
    return dict(sorted(seconds.items(), key=lambda one: -one[1])[:LONGEST])


def _cases(checkout: Path) -> set[str]:
    """Return the ids of all test cases of a checkout."""
    command = [str(checkout / ".venv" / "bin" / "python"), *COLLECT]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"the tests of {checkout} cannot be collected:\n{done.stdout[-2000:]}")
    return set(CASE.findall(done.stdout))


def tables(results: Results) -> Iterator[Table]:
    """Yield the tables of what was measured."""
    if results.checks:
        rows = [[one.name, f"{one.seconds:.0f}", f"{one.processor_seconds:.0f}"] for one in results.checks]
        note = (
            f"{PARALLEL_CHECKS} checks run at the same time, and the tests on stages in {PARALLEL_STAGES} processes. "
            "Processor seconds leave out what outlives a check's programs."
        )
        yield Table("Checks of `make test`", ["check", "seconds", "processor seconds"], rows, note)
        files = [[f"`{name}`", f"{seconds:.0f}"] for name, seconds in results.longest.items()]
        yield Table("The longest test files", ["file", "seconds"], files)
    if results.cases:
        rows = [["this one", f"{results.cases:,}", ""]]
        if results.cases_there is not None:
            rows.append(["the other", f"{results.cases_there:,}", f"{len(results.missing):,}"])
        yield Table("Test cases", ["version", "cases", "not in this one"], rows, "\n".join(results.missing))


def headlines(results: Results) -> Iterator[Headline]:
    """Yield the time of all checks."""
    if results.checks:
        longest = max(results.checks, key=lambda one: one.seconds)
        yield Headline(f"`make test`: longest check, {longest.name}", f"{longest.seconds:.0f} s")


def _print(results: Results, options: argparse.Namespace) -> None:
    keep("checks", headlines(results), results.machine)
    if options.json:
        print_json(asdict(results))
    else:
        show(tables(results), (), machine=results.machine, as_document=options.markdown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
