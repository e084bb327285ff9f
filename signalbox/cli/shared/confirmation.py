"""The question before a command destroys something."""

import sys
from typing import Annotated

import typer

from signalbox.cli.shared.output import escaped
from signalbox.errors import RejectedError

DECLINED = 1

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, *, yes: bool, as_json: bool = False) -> None:
    """Ask a question on standard error; return after a yes, end the command with 1 after anything else.

    Nothing is asked with `yes`. Raises `RejectedError` where no user can be asked: standard input is no terminal, or
    the output is JSON for a program.
    """
    if yes:
        return
    if as_json or not is_terminal():
        cause = "--json cannot ask" if as_json else "standard input is no terminal, so no user can be asked"
        raise RejectedError(f"{question} {cause}: give --yes to confirm")
    # Not `typer.confirm`, which turns an interrupt at its prompt into the exit status of a no.
    sys.stderr.write(f"{escaped(question)} [y/N]: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        sys.stderr.write("Nothing is changed.\n")
        raise typer.Exit(DECLINED)


def is_terminal() -> bool:
    """Return whether a user can be asked."""
    return sys.stdin.isatty()
