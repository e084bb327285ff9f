"""What the commands of live share: which realm of which stage, and who joins it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.shared.stage import say
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.cli.shared.signals import Ending
    from signalbox.clients.live.client import LiveClient
    from signalbox.clients.live.cursor import Cursor, ReceivedEvent
    from signalbox.clients.live.session import Login

TICKET = "SIGNALBOX_TICKET"

Exchange = Annotated[
    str | None,
    typer.Option(
        "--exchange",
        help="Exchange to join, which must be live; here, the one for trials if not given.",
        metavar="NAME",
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        help=f"Join as this user, with the ticket in {TICKET}; here, that of a user for trials.",
        metavar="NAME",
    ),
]


@contextmanager
def joining(*, aws: bool, stage: str, exchange: str | None, user: str | None) -> "Iterator[LiveClient]":
    """Give a client that joins a realm when it is first asked for something."""
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.clients.live.client import LiveClient
    from signalbox.clients.web_socket import connector

    deployment = find_deployment(aws=aws, stage=stage)
    if not deployment.websocket_url:
        raise RejectedError("the stage has no live: bring it up to date by deploying it again")
    login = login_of(deployment, exchange=exchange, user=user)
    with LiveClient(connector(deployment.websocket_url), login) as client:
        yield client


def login_of(deployment: "Deployment", *, exchange: str | None, user: str | None) -> "Login":
    """Return who joins what: what is not said is what the local stage has for trials."""
    from signalbox.clients.live.session import Login

    realm = exchange or deployment.realm
    name = user or next(iter(deployment.tickets), "")
    missing = [option for option, value in (("--exchange", realm), ("--user", name)) if not value]
    if missing:
        raise RejectedError(f"{' and '.join(missing)} must be given: there is no local stage that has them for trials")
    return Login(realm, name, _ticket(deployment, name))


def _ticket(deployment: "Deployment", user: str) -> str:
    found = os.environ.get(TICKET) or deployment.tickets.get(user)
    if found:
        return found
    if is_terminal():
        return str(typer.prompt(f"Ticket of {user}", hide_input=True, err=True))
    raise RejectedError(f"there is no ticket of user {user!r}: set {TICKET}; `signalbox user secret {user}` makes one")


def is_terminal() -> bool:
    """Say whether somebody can be asked."""
    return sys.stdin.isatty()


def events(
    client: "LiveClient", cursor: "Cursor", ending: "Ending", *, follow: bool = True
) -> "Iterator[ReceivedEvent]":
    """Yield events until a signal comes, or until all of the past has come; tell what a reader ought to know."""
    client.follow(cursor)
    source, connections = iter(client) if follow else client.backfill(), 1
    while not ending.is_due:
        event = None
        with ending.waiting():
            event = next(source, None)
        if event is None:
            return
        if client.connections > connections:
            connections = client.connections
            say("the connection was lost, and is there again")
        if event.skipped:
            say(f"{event.skipped} before #{event.sequence} of {event.topic} are kept no longer, or not for this user")
        yield event
