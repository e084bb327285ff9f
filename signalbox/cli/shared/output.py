"""Output of commands: lines, tables, JSON and errors. Control characters in the texts of others are escaped here."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 200  # of tables where standard output is no terminal
# C0 and C1 without the tab, line and paragraph separators, marks and overrides of direction, invisible format
# characters, fillers and tags, and halves of surrogate pairs. Joiners and selectors of variants stay: emoji and several
# scripts need them.
NOT_PRINTABLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
FORMULAS = ("=", "+", "-", "@")  # https://owasp.org/www-community/attacks/CSV_Injection


def escaped(text: str) -> str:
    """Return a text in one line without control characters: each becomes an escape, as in Python's literals."""
    return NOT_PRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def escape_unencodable() -> None:
    """Let both streams escape the characters that their encodings lack, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # tests replace them by others
            stream.reconfigure(errors="backslashreplace")


def print_json(value: object) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_json_line(value: object) -> None:
    """Print a value as JSON on one line, at once."""
    print_line(json.dumps(value))
    sys.stdout.flush()


def print_line(text: str = "") -> None:
    """Print one line of a result, also if the text has several."""
    sys.stdout.write(escaped(text) + "\n")


def print_text(text: str) -> None:
    """Print a text with its line breaks. Texts of others must be `escaped` before they become a part of it."""
    sys.stdout.write("\n".join(map(escaped, text.split("\n"))) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table; values are never cut off."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = None if title is None else Text(escaped(title))
    table = Table(title=shown, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(escaped(value)) for value in row))
    console().print(table)


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[str | None]]) -> None:
    """Print CSV. An apostrophe precedes a value that a spreadsheet would execute as a formula."""
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows([_cell(value or "") for value in row] for row in (columns, *rows))


def _cell(value: str) -> str:
    return f"'{escaped(value)}" if value.startswith(FORMULAS) and not _is_number(value) else escaped(value)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def print_list(
    found: object, columns: Sequence[str], rows: Iterable[Sequence[str]], *, none: str, as_json: bool
) -> None:
    """Print a list of the stage as JSON or as a table of its `rows`; `none` is the line for an empty one."""
    if as_json:
        print_json(found)
    elif found:
        print_table(columns, rows)
    else:
        print_line(none)


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
    lines = [f"error: {first}", *(f"  {line}" for line in more)]
    sys.stderr.write("".join(f"{escaped(line)}\n" for line in lines))
