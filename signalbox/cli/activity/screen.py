"""The screen of `signalbox top`: a table that fits the width of the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from signalbox.cli.shared.stage import duration, local_time

if TYPE_CHECKING:
    from rich.console import RenderableType

Document = Mapping[str, Any]
BARS = "▁▂▃▄▅▆▇█"
MINUTES_OF_BAR = 2
WHOLE_RATE = 10  # from which a rate has no decimals
OLD_SECONDS = 60  # from which the oldest message is marked
SMALLEST_USD = 0.0001
# The narrowest screens with the column of the last hour, with the commands in the rows, and with both bounds of costs.
WITH_BARS, WITH_COMMANDS, WITH_RANGE = 108, 140, 76
NUMBERS = ("rate", "backlog", "oldest", "errors", "cost")
NOTE = "rate: last 5 minutes · errors, cost: last hour, at AWS's list prices without idle costs"


def screen(document: Document, problem: str, *, width: int) -> "RenderableType":
    """Return the table, then the commands that do not fit into it, then the problem of the last read."""
    rows: Sequence[Document] = document["capabilities"]
    lines = [Text(f"{document['stage']} at {local_time(document['at'])}", style="bold", overflow="fold")]
    below = list(_commands(rows, all_of_them=width < WITH_COMMANDS))
    notes = [Text(NOTE, style="dim"), *([Text(problem, style="red")] if problem else [])]
    return Group(*lines, _table(rows, width=width), *below, *notes)


def _table(rows: Sequence[Document], *, width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1 if width >= WITH_RANGE else 0))
    table.add_column("capability", no_wrap=True)
    if width >= WITH_BARS:
        table.add_column("last hour", no_wrap=True)
    for name in NUMBERS:
        table.add_column("USD" if name == "cost" else name, justify="right", no_wrap=True)
    if width >= WITH_COMMANDS:
        table.add_column("ask further", overflow="fold")
    for one in rows:
        bars = [Text(_bars(one["minutes"]), style="cyan")] if width >= WITH_BARS else []
        command = [Text(one["questions"]["more"], style="dim")] if width >= WITH_COMMANDS else []
        table.add_row(Text(one["capability"]), *bars, *_numbers(one, has_range=width >= WITH_RANGE), *command)
    return table


def _numbers(one: Document, *, has_range: bool) -> Iterator[Text]:
    yield Text(f"{_rate(one['rate'])}/s", style="" if one["rate"] else "dim")
    yield Text(f"{one['backlog']:,}", style="" if one["backlog"] else "dim")
    oldest = one["oldest_seconds"]
    yield Text("-", style="dim") if oldest is None else _age(oldest)
    yield Text(f"{one['errors']:,}", style="bold red" if one["errors"] else "dim")
    yield Text(usd(one["usd_least"] if has_range else one["usd_most"], one["usd_most"]))


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= WHOLE_RATE else f"{rate:.2g}"


def _age(seconds: float) -> Text:
    return Text(duration(seconds), style="yellow" if seconds > OLD_SECONDS else "")


def usd(least: float, most: float) -> str:
    """Return a range of costs with four decimals."""
    if most < SMALLEST_USD:
        return f"< {SMALLEST_USD}" if most else "0"
    lower, upper = f"{least:.4f}", f"{most:.4f}"
    return upper if lower == upper else f"{lower} to {upper}"


def _bars(minutes: Sequence[int]) -> str:
    """Return a bar for every two minutes; a minute with any work has at least the lowest one."""
    pairs = [sum(minutes[at : at + MINUTES_OF_BAR]) for at in range(0, len(minutes), MINUTES_OF_BAR)]
    most = max(pairs, default=0)
    return "".join(BARS[(number * (len(BARS) - 1)) // most] if number else " " for number in pairs)


def _commands(rows: Sequence[Document], *, all_of_them: bool) -> Iterator[Text]:
    """Yield the commands: of rows with errors always, of every row if the table has no column for them."""
    if all_of_them:
        yield from (
            Text(f"{one['capability']}: {one['questions']['more']}", style="dim", overflow="fold") for one in rows
        )
    for one in rows:
        if one["errors"]:
            text = f"errors of {one['capability']}: {one['questions']['errors']}, then signalbox trace ID"
            yield Text(text, overflow="fold")
    if all_of_them:
        yield Text("")
