"""The options and the error handling of all benchmark programs."""

import argparse
from collections.abc import Callable, Sequence

from signalbox.cli.shared.output import print_error
from signalbox.errors import RejectedError, UnavailableError


def parser(name: str, description: str | None, *, parts: Sequence[str], page: str) -> argparse.ArgumentParser:
    """Return the argument parser of `python -m benchmarks.<name>`, whose results are published on `page`."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    made.add_argument("--only", choices=parts, action="append", help="measure only this part; repeatable")
    made.add_argument("--port", type=int, default=0, help="the emulator's port on 127.0.0.1 (default: any)")
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON with every measurement")
    form.add_argument("--markdown", action="store_true", help=f"print Markdown, as in {page}")
    return made


def status(measure: Callable[[], None]) -> int:
    """Run `measure` and return the exit status: 1, with a message on stderr, if the measurement is impossible."""
    try:
        measure()
    except (RejectedError, UnavailableError) as error:
        print_error(str(error))
        return 1
    return 0
