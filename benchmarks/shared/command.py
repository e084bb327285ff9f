"""The options and the output of all benchmark programs."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Protocol, TypeVar

from benchmarks.shared.machine import Machine
from benchmarks.shared.report import Table, show
from signalbox.cli.shared.output import print_error, print_json
from signalbox.errors import RejectedError, UnavailableError


class Results(Protocol):
    """The results of a run, a dataclass."""

    @property
    def machine(self) -> Machine:
        """The conditions of the run."""


R = TypeVar("R", bound=Results)


def parser(name: str, description: str | None, *, parts: Sequence[str], page: str) -> argparse.ArgumentParser:
    """Return the argument parser of `python -m benchmarks.<name>`, whose results are published on `page`."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    made.add_argument("--only", choices=parts, action="append", help="measure only this part; repeatable")
    made.add_argument("--port", type=int, default=0, help="the emulator's port on 127.0.0.1 (default: any)")
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON with every measurement")
    form.add_argument("--markdown", action="store_true", help=f"print Markdown, as in {page}")
    return made


def report(
    options: argparse.Namespace,
    measure: Callable[[], R],
    *,
    tables: Callable[[R], Iterable[Table]],
    targets: Callable[[R], Iterable[tuple[str, bool]]],
) -> int:
    """Measure, print the results and return the exit status: 1, with a message, if the measurement is impossible."""
    try:
        results = measure()
    except (RejectedError, UnavailableError) as error:
        print_error(str(error))
        return 1
    if options.json:
        print_json(asdict(results))  # type: ignore[call-overload]  # every program's results are a dataclass
    else:
        show(tables(results), targets(results), machine=results.machine, as_document=options.markdown)
    return 0
