"""`signalbox bind`, `unbind` and `bindings`: the bindings between exchanges and queues."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.exchange.stage import Document, UserOutputOptions, exchanges
from signalbox.cli.shared.output import print_json, print_line, print_list
from signalbox.errors import RejectedError
from signalbox.nearest import suggestion

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

Source = Annotated[str, typer.Argument(help="Source exchange.", metavar="EXCHANGE")]
Target = Annotated[str, typer.Argument(help="Queue or exchange that gets the messages.", metavar="TARGET")]
Patterns = Annotated[
    list[str],
    typer.Argument(help="Routing key patterns: * matches one word, # zero or more words.", metavar="PATTERN"),
]
Do = Callable[["ExchangeClient", str], Document]


def bind(
    *,
    exchange: Source,
    target: Target,
    patterns: Patterns,
    options: UserOutputOptions,
) -> None:
    """Bind a queue, or another exchange, to an exchange."""
    _check_order(exchange, target)
    with exchanges(options, says_where=True) as client:
        done = [client.bind(exchange, target, pattern) for pattern in patterns]
    if options.as_json:
        print_json(done)
        return
    for pattern, document in zip(patterns, done, strict=True):
        outcome = "was bound already" if document.get("was_bound") else "bound"
        print_line(f"{exchange} → {target}  {_quoted(pattern)}  {outcome}")


def unbind(
    *,
    exchange: Source,
    target: Target,
    patterns: Patterns,
    options: UserOutputOptions,
) -> None:
    """Remove bindings; messages that are already in the queue stay."""
    _check_order(exchange, target)
    with exchanges(options, says_where=True) as client:
        done = [client.unbind(exchange, target, pattern) for pattern in patterns]
        missing = not all(document.get("unbound") for document in done)
        bound = _patterns(client, exchange, target) if missing and not options.as_json else ()
    if options.as_json:
        print_json(done)
        return
    for pattern, document in zip(patterns, done, strict=True):
        outcome = "unbound" if document.get("unbound") else f"was not bound{suggestion(pattern, bound)}"
        print_line(f"{exchange} → {target}  {_quoted(pattern)}  {outcome}")


def _patterns(client: "ExchangeClient", exchange: str, target: str) -> list[str]:
    found = client.bindings(exchange)  # or the stage's error, with the nearest name
    return [one["pattern"] for one in found if target in (one.get("queue"), one.get("destination"))]


def list_bindings(
    *,
    exchange: Annotated[
        str | None, typer.Argument(help="List only the bindings of this exchange.", metavar="EXCHANGE")
    ] = None,
    options: UserOutputOptions,
) -> None:
    """List the bindings between resources that you may read."""
    with exchanges(options) as client:
        found = client.bindings(exchange)
    rows = ((one["exchange"], one.get("queue") or one["destination"], _quoted(one["pattern"])) for one in found)
    print_list(found, ["exchange", "target", "pattern"], rows, none="no bindings", as_json=options.as_json)


def _check_order(exchange: str, target: str) -> None:
    if exchange.startswith("q_"):
        given = f"{exchange!r} is a queue: the exchange comes first, then the queue"
        raise RejectedError(f"{given}; give {target!r} first" if target.startswith("x") else given)


def _quoted(pattern: str) -> str:
    return pattern or "'' (the empty routing key)"
