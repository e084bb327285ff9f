"""`signalbox queue`: declares, deletes and lists queues."""

from datetime import timedelta
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import (
    UserOutputOptions,
    deleting,
    duration_text,
    exchanges,
    note_sqs_name,
    print_deletion,
    print_resource,
    seconds,
)
from signalbox.cli.shared.confirmation import Yes
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_list
from signalbox.cli.shared.stage import age
from signalbox.exchange.model.records import GroupBy

app = CommandGroup("Queues that are bound to exchanges: declare, delete and list.")

Name = Annotated[str, typer.Argument(help="Name of the queue, such as q_alice_weather.", metavar="QUEUE")]
COLUMNS = ("queue", "queue in SQS", "owner", "expires", "message ttl", "prefetch", "receives", "last consumer")


@app.command()
def declare(
    *,
    name: Name,
    expires: Annotated[
        str | None,
        typer.Option(
            help="Delete the queue after this time without consumers (on AWS plus 20 minutes), such as 5m or never.",
            metavar="TIME",
        ),
    ] = None,
    message_ttl: Annotated[
        str | None, typer.Option(help="Drop messages older than this, such as 1h or never.", metavar="TIME")
    ] = None,
    prefetch: Annotated[
        int | None, typer.Option(help="Maximum number of unacknowledged messages of a consumer; default: 25.")
    ] = None,
    maximum_receives: Annotated[
        int | None, typer.Option(help="Receives after which a message becomes a dead letter; 5 by default.")
    ] = None,
    group_by: Annotated[
        GroupBy | None,
        typer.Option(help="Message group in a standard queue: a burst of one group delays the others less."),
    ] = None,
    options: UserOutputOptions,
) -> None:
    """Create a queue, or update the given settings of an existing one."""
    expires_seconds, ttl_seconds = seconds(expires, "--expires"), seconds(message_ttl, "--message-ttl")
    with exchanges(options, says_where=True) as client:
        document = client.declare_queue(
            name,
            expires=None if expires_seconds is None else timedelta(seconds=expires_seconds),
            message_ttl=None if ttl_seconds is None else timedelta(seconds=ttl_seconds),
            prefetch=prefetch,
            maximum_receives=maximum_receives,
            group_by=group_by,
        )
    print_resource(document, as_json=options.as_json)
    note_sqs_name(document, name)


@app.command()
def delete(
    *,
    name: Name,
    if_empty: Annotated[bool, typer.Option("--if-empty", help="Delete the queue only if it has no messages.")] = False,
    yes: Yes = False,
    options: UserOutputOptions,
) -> None:
    """Delete a queue with its bindings and its messages; asks first, except with --if-empty."""
    with deleting(f"queue {name!r}", options, lost="bindings and messages", yes=yes or if_empty) as client:
        document = client.delete_queue(name, if_empty=if_empty)
        print_deletion(document, name, client, as_json=options.as_json)


@app.command(name="list")
def list_queues(*, options: UserOutputOptions) -> None:
    """List the queues that you may read, with their names in SQS."""
    with exchanges(options) as client:
        found = client.queues()
    rows = (
        (
            one["queue"],
            one["sqs_name"],
            one["owner"] or "administrators",
            duration_text(one["expires_seconds"]),
            duration_text(one["message_ttl_seconds"]),
            str(one["prefetch"]),
            str(one["maximum_receives"]),
            age(one["consumed_at"]) or "none",
        )
        for one in found
    )
    print_list(found, COLUMNS, rows, none="no queues", as_json=options.as_json)
