"""`signalbox publish`: publishes messages to exchanges."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from signalbox.cli.exchange.stage import UserOptions, exchanges
from signalbox.cli.shared import confirmation
from signalbox.cli.shared.files import read_text
from signalbox.cli.shared.output import print_error, print_line
from signalbox.cli.shared.stage import say
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.errors import RejectedError, SignalboxError
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import parse_routing_key

STANDARD_INPUT = Path("-")
CHUNK_BYTES = 65_536


def publish(
    *,
    exchange: Annotated[str, typer.Argument(help="Exchange to publish to.", metavar="EXCHANGE")],
    routing_key: Annotated[str, typer.Argument(help="Routing key: words between dots; '' is valid.", metavar="KEY")],
    body: Annotated[
        str | None, typer.Argument(help="Body; default: standard input, unless --file is given.", metavar="BODY")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="File with the body; - for standard input.")] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Publish each line of the file or standard input as a message.")
    ] = False,
    header: Annotated[
        list[str] | None, typer.Option("--header", help="Header of each message; repeatable.", metavar="NAME=TEXT")
    ] = None,
    deduplication_id: Annotated[
        str | None,
        typer.Option(help="An ordered exchange accepts this id once in five minutes; random by default.", metavar="ID"),
    ] = None,
    order_by: Annotated[
        OrderBy, typer.Option(help="Order of the messages, which the exchange must keep.")
    ] = OrderBy.TOPIC,
    options: UserOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line a message.")] = False,
) -> None:
    """Publish a message, or one for each line, and print the ids of the published messages."""
    if body is not None and (file is not None or lines):
        raise RejectedError("the body is given twice: as an argument, and by --file or --lines")
    if lines and deduplication_id is not None:
        raise RejectedError("--deduplication-id is for one message: with --lines all but the first would be dropped")
    to = _PublishTarget(exchange, routing_key, dict(map(_header, header or ())), deduplication_id, order_by, as_json)
    if lines:
        with exchanges(options, says_where=True) as client, _opened(file) as source:
            _publish_lines(client, to, source)
        return
    text = _body(body, file)
    with exchanges(options, says_where=True) as client:
        message_id = client.publish(
            exchange, routing_key, text, to.headers, deduplication_id=deduplication_id, order_by=order_by
        )
        to.print_id(message_id)
        _note_unbound(client, to)


def _note_unbound(client: ExchangeClient, to: "_PublishTarget") -> None:
    """Note at a terminal that no binding matches the key; programs are spared the time of the two commands."""
    if not _is_watched():
        return
    try:
        (found,) = client.exchanges(to.exchange)
        if found.get("live"):
            return  # a live exchange also has connections, which need no binding
        bindings: BindingTrie[str] = BindingTrie()
        for one in client.bindings(to.exchange):
            bindings.add(Pattern.parse(one["pattern"]), one.get("queue") or one["destination"])
    except SignalboxError:
        return  # the message is published; this note is not worth an error
    if bindings.matching(parse_routing_key(to.routing_key)):
        return
    outcome = f"goes to {found['alternate']}" if found.get("alternate") else "is dropped"
    say(f"no binding of {to.exchange} that you may read matches {to.routing_key!r}: a message without one {outcome}")


def _is_watched() -> bool:
    return sys.stderr.isatty()


@dataclass(frozen=True, slots=True)
class _PublishTarget:
    """The exchange, routing key and options of all messages of a command."""

    exchange: str
    routing_key: str
    headers: Mapping[str, str]
    deduplication_id: str | None
    order_by: OrderBy
    as_json: bool

    def print_id(self, message_id: str) -> None:
        """Print the id of a published message."""
        document = {"exchange": self.exchange, "routing_key": self.routing_key, "message_id": message_id}
        print_line(json.dumps(document) if self.as_json else message_id)


def _publish_lines(client: ExchangeClient, to: _PublishTarget, source: BinaryIO) -> None:
    """Publish each line as soon as it arrives; report those that fail and continue."""
    sent = unsent = 0
    for numbered in _numbered(source):
        posts = (PublishRequest(to.routing_key, line, to.headers) for _, line in numbered)
        for (number, _), posted in zip(
            numbered, client.publish_all(to.exchange, posts, order_by=to.order_by), strict=True
        ):
            if posted.message_id is None:
                print_error(f"line {number}: {posted.problem or 'SQS did not confirm it'}")
                unsent += 1
            else:
                to.print_id(posted.message_id)
                sent += 1
        sys.stdout.flush()
    say(f"{sent} published to {to.exchange}" + (f", {unsent} not" if unsent else ""))
    if unsent:
        raise typer.Exit(2)


def _numbered(source: BinaryIO) -> Iterator[list[tuple[int, str]]]:
    """Yield non-empty lines with their numbers as they arrive, in groups that arrived together."""
    number, rest = 0, b""
    while chunk := source.read1(CHUNK_BYTES):  # type: ignore[attr-defined] # both buffered files have it
        *whole, rest = (rest + chunk).split(b"\n")
        yield [(number + at, _text(line, number + at)) for at, line in enumerate(whole, start=1) if line]
        number += len(whole)
    if rest:
        yield [(number + 1, _text(rest, number + 1))]


def _text(line: bytes, number: int) -> str:
    try:
        return line.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        raise RejectedError(f"line {number} is not UTF-8: {error}") from error


@contextmanager
def _opened(file: Path | None) -> Iterator[BinaryIO]:
    if file is None or file == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        source = file.open("rb")
    except OSError as error:
        raise RejectedError(f"cannot read {str(file)!r}: {error}") from error
    with source:
        yield source


def _body(body: str | None, file: Path | None) -> str:
    if body is not None:
        return body
    if file is None and confirmation.is_terminal():
        raise RejectedError("the body is missing: give it as an argument, with --file or on standard input")
    return read_text(file or STANDARD_INPUT)


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise RejectedError(f"header {text!r} is not NAME=TEXT")
    return name, value
