"""`signalbox exchange`: topic exchanges, of which the matching is there."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from signalbox.cli.files import read_json
from signalbox.cli.output import print_line, print_table
from signalbox.errors import RejectedError

app = typer.Typer(help="Topic exchanges: which queues a message reaches.", no_args_is_help=True)

Bindings = Annotated[Path, typer.Option(help='JSON list of {"queue": NAME, "pattern": PATTERN}.')]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one line a key.")]


@app.callback()
def exchange() -> None:
    """Topic exchanges: which queues a message reaches."""


@app.command()
def match(*, bindings: Bindings, as_json: Json = False) -> None:
    """Tell which queues get a message, for each routing key on a line of standard input; needs no stage."""
    from signalbox.exchange.bindings import parse_bindings
    from signalbox.exchange.matching import matches, parse_routing_keys

    if str(bindings) == "-":
        raise RejectedError("standard input brings the routing keys; give the bindings in a file")
    bound = parse_bindings(read_json(bindings))
    found = matches(parse_routing_keys(sys.stdin.buffer.read()), bound)
    if as_json:
        for each in found:
            print_line(json.dumps(each.as_document()))
    else:
        print_table(["key", "queues"], ((each.key, ", ".join(each.queues) or "none: dropped") for each in found))
