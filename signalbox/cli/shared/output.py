"""Output of commands: tables, JSON and error lines."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 200  # of tables where standard output is no terminal


def print_json(value: object) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_line(text: str = "") -> None:
    """Print one line of a result."""
    sys.stdout.write(text + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table; values are printed unchanged and never cut off."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)


def console() -> "Console":
    """Return the console for tables on standard output; imports rich, which only a shown table needs."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def print_fields(fields: Mapping[str, str]) -> None:
    """Print names and values, one to a line."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        print_line(f"{name:<{width}}  {value}")


def print_error(message: str) -> None:
    """Print an error message to standard error, one `error:` line for each problem."""
    first, *more = message.splitlines() or [""]
    sys.stderr.write("\n".join([f"error: {first}", *(f"  {line}" for line in more)]) + "\n")
