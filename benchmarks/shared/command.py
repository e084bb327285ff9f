"""The options and the output of all benchmark programs."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Generic, Protocol, TypeVar

from benchmarks.shared.machine import Machine
from benchmarks.shared.report import Table, show
from signalbox.cli.shared.output import print_error, print_json
from signalbox.errors import RejectedError, UnavailableError
from signalbox.local.progress import Say, step

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Part(Generic[M]):
    """A part of a benchmark: how it is measured, its tables, and the promises that it shows to be kept."""

    measure: Callable[[argparse.Namespace, Say], M]
    tables: Callable[[M], Iterable[Table]]
    targets: Callable[[M], Iterable[tuple[str, bool]]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a run, by part."""

    machine: Machine
    parts: Mapping[str, Any]


def run(options: argparse.Namespace, parts: Mapping[str, Part[Any]], machine: Machine) -> int:
    """Measure the chosen parts, print them, and return the exit status."""

    def measure() -> Measured:
        found = {}
        for name in [name for name in parts if name in (options.only or parts)]:
            with step(name) as say:
                found[name] = parts[name].measure(options, say)
        return Measured(machine, found)

    def each(find: Callable[[Part[Any]], Callable[[Any], Iterable[M]]]) -> Callable[[Measured], Iterable[M]]:
        return lambda measured: (one for name, found in measured.parts.items() for one in find(parts[name])(found))

    return report(options, measure, tables=each(lambda part: part.tables), targets=each(lambda part: part.targets))


class Results(Protocol):
    """The results of a run, a dataclass."""

    @property
    def machine(self) -> Machine:
        """The conditions of the run."""


R = TypeVar("R", bound=Results)


def parser(name: str, description: str | None, *, parts: Iterable[str], page: str) -> argparse.ArgumentParser:
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
