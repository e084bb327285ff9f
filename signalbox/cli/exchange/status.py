"""`signalbox status`: shows exchanges and queues with the states of `sr3 status`."""

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.exchange.stage import Document, UserOutputOptions, exchanges
from signalbox.cli.shared.output import console, escaped, print_json, print_json_line
from signalbox.cli.shared.signals import Ending
from signalbox.cli.shared.stage import age, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table


SECONDS = 5.0
NOTHING = "no exchanges and no queues"
KINDS = ("exchange", "queue")
UNKNOWN = "?"
WITHOUT_RATE = (
    "?  not known: CloudWatch counts what consumers delete, minutes later and for queues in use only; "
    "the local stage has no such figures"
)
COLUMNS = ("state", "queued", "in flight", "lag", "in/s", "out/s", "rejects", "retries", "dead letters", "last")
# By urgency: red needs repair, yellow needs attention.
COLOURS = {
    "missing": "bold red",
    "hung": "bold red",
    "retry": "red",
    "reject": "magenta",
    "lagging": "yellow",
    "shutdown": "yellow",
    "idle": "cyan",
    "running": "green",
}
Names = Annotated[
    list[str] | None,
    typer.Argument(help="Only these exchanges and queues; * matches any text.", metavar="NAME", show_default=False),
]


def status(
    *,
    names: Names = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until interrupted.")] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two refreshes of --watch.", min=1)] = SECONDS,
    options: UserOutputOptions,
) -> None:
    """Show exchanges and queues: state, backlog, age, rates, rejects and retries.

    Rates, rejects and retries are those of the last five minutes.
    """
    ending = Ending()
    with (
        ending.awaited(),
        exchanges(options) as client,
        _screen(as_json=options.as_json, watch=watch) as show,
        ending.waiting(),
    ):
        show(client.status(*names or ()))
        while watch:
            time.sleep(interval)
            show(client.status(*names or ()))
    ending.exit_if_interrupted()


@contextmanager
def _screen(*, as_json: bool, watch: bool) -> "Iterator[Callable[[Document], None]]":
    """Yield the function that shows a status: in place on a terminal, else line by line."""
    if as_json:
        yield print_json_line if watch else print_json
        return
    if not (watch and sys.stdout.isatty()):
        yield lambda document: console().print(_tables(document))
        return
    from rich.live import Live

    with Live(console=console(), auto_refresh=False) as live:
        yield lambda document: live.update(_tables(document), refresh=True)


def _tables(document: Document) -> "RenderableType":
    from rich.console import Group

    tables = [_table(kind, document.get(f"{kind}s") or ()) for kind in KINDS]
    shown: list[RenderableType] = [table for table in tables if table.row_count]
    if any(one["rate_out"] is None for one in document.get("queues") or ()):
        shown.append(WITHOUT_RATE)
    return Group(*shown) if shown else NOTHING


def _table(kind: str, conditions: "Sequence[Document]") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(kind, overflow="fold")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "state" else "right")
    for one in conditions:
        state = Text(one["state"], style=COLOURS.get(one["state"], ""))
        table.add_row(Text(escaped(one["name"])), state, *(Text(cell) for cell in _cells(one)))
    return table


def _cells(one: Document) -> "Iterator[str]":
    yield str(one["queued"])
    yield str(one["in_flight"])
    yield "" if one["lag_seconds"] is None else duration(one["lag_seconds"])
    for rate in ("rate_in", "rate_out"):
        yield UNKNOWN if one[rate] is None else f"{one[rate]:g}"
    for count in ("rejects", "retries", "dead_letters"):
        yield str(one[count])
    yield age(one["last_activity"])
