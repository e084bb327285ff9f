"""`signalbox exchange`: topic exchanges."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import UserOutputOptions, deleting, exchanges, print_deletion, print_resource
from signalbox.cli.live.issuers import IssuerOptions
from signalbox.cli.live.settings import LiveOptions
from signalbox.cli.shared.confirmation import Yes
from signalbox.cli.shared.files import read_json
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_line, print_list, print_table
from signalbox.cli.shared.stage import age, say
from signalbox.control.protocol import CommandRejected
from signalbox.errors import RejectedError
from signalbox.exchange.matching.binding_files import matches, parse_routing_keys
from signalbox.exchange.model.bindings import parse_bindings

app = CommandGroup("Topic exchanges: declare, delete, list and match.")

Name = Annotated[str, typer.Argument(help="Name of the exchange, such as xpublic or xs_alice.", metavar="EXCHANGE")]
Bindings = Annotated[Path, typer.Option(help='JSON list of {"queue": NAME, "pattern": PATTERN}.')]
JsonLines = Annotated[bool, typer.Option("--json", help="Print JSON, one line a key.")]


@app.command()
def declare(
    *,
    name: Name,
    alternate: Annotated[
        str | None,
        typer.Option(help="Exchange for messages that no binding matches; '' removes it.", metavar="EXCHANGE"),
    ] = None,
    live: LiveOptions,
    issuers: IssuerOptions,
    options: UserOutputOptions,
) -> None:
    """Create an exchange, or update the given settings; an exchange whose name ends with .fifo is ordered."""
    said = live.fields(issuers.fields())
    with exchanges(options, says_where=True) as client:
        document = client.declare_exchange(name, alternate=alternate, live=said)
    print_resource(document, as_json=options.as_json)
    if document.get("connected") is False:
        say("not connected to the router yet: messages wait in its queue for about a minute")


@app.command()
def delete(
    *,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Also delete its bindings and its unrouted messages.")] = False,
    yes: Yes = False,
    options: UserOutputOptions,
) -> None:
    """Delete an exchange; without --force, only if it has no bindings and no messages. With --force, asks first."""
    lost = "bindings and unrouted messages"
    with deleting(f"exchange {name!r}", options, lost=lost, yes=yes or not force) as client:
        try:
            document = client.delete_exchange(name, force=force)
        except CommandRejected as error:
            # The stage names the field of the command; here it is an option.
            raise CommandRejected(str(error).replace("delete with force", "delete with --force")) from error
        print_deletion(document, name, client, as_json=options.as_json)


@app.command(name="list")
def list_exchanges(*, options: UserOutputOptions) -> None:
    """List the exchanges that you may read."""
    with exchanges(options) as client:
        found = client.exchanges()
    rows = (
        (
            one["exchange"],
            "ordered" if one["ordered"] else "standard",
            one["alternate"] or "",
            one["created_by"] or "administrators",
            age(one["created_at"]),
            one["sqs_name"],
        )
        for one in found
    )
    columns = ["exchange", "kind", "alternate", "declared by", "age", "queue in SQS"]
    print_list(found, columns, rows, none="no exchanges", as_json=options.as_json)


@app.command()
def match(*, bindings: Bindings, as_json: JsonLines = False) -> None:
    """Print the queues that match each routing key on a line of standard input; needs no stage."""
    if str(bindings) == "-":
        raise RejectedError("standard input is for the routing keys; give the bindings in a file")
    bound = parse_bindings(read_json(bindings))
    found = matches(parse_routing_keys(sys.stdin.buffer.read()), bound)
    if as_json:
        for each in found:
            print_line(json.dumps(each.as_document()))
    else:
        print_table(["key", "queues"], ((each.key, ", ".join(each.queues) or "none: dropped") for each in found))
