"""Options and helpers that the live commands share: the stage, the realm and the user to join as."""

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
        help="Live exchange to join; on the local stage, the trial exchange by default.",
        metavar="NAME",
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        help=f"User to join as, with the ticket in {TICKET}; on the local stage, a trial user by default.",
        metavar="NAME",
    ),
]


@contextmanager
def joining(*, aws: bool, stage: str, exchange: str | None, user: str | None) -> "Iterator[LiveClient]":
    """Provide a client that joins a realm at its first request."""
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.clients.live.client import LiveClient
    from signalbox.clients.web_socket import connector

    deployment = find_deployment(aws=aws, stage=stage)
    if not deployment.websocket_url:
        raise RejectedError("the stage has no live API: deploy it again to update it")
    login = login_of(deployment, exchange=exchange, user=user)
    with LiveClient(connector(deployment.websocket_url), login) as client:
        yield client


def login_of(deployment: "Deployment", *, exchange: str | None, user: str | None) -> "Login":
    """Return the realm, user and ticket to join with; the defaults are the local stage's trial realm and user."""
    from signalbox.clients.live.session import Login

    realm = exchange or deployment.realm
    name = user or next(iter(deployment.tickets), "")
    missing = [option for option, value in (("--exchange", realm), ("--user", name)) if not value]
    if missing:
        raise RejectedError(f"{' and '.join(missing)} must be given: there is no local stage with trial values")
    return Login(realm, name, _ticket(deployment, name))


def _ticket(deployment: "Deployment", user: str) -> str:
    found = os.environ.get(TICKET) or deployment.tickets.get(user)
    if found:
        return found
    if is_terminal():
        return str(typer.prompt(f"Ticket of {user}", hide_input=True, err=True))
    raise RejectedError(
        f"there is no ticket of user {user!r}: set {TICKET}; `signalbox user secret {user}` creates one"
    )


def is_terminal() -> bool:
    """Return whether a user can be prompted."""
    return sys.stdin.isatty()


def events(
    client: "LiveClient", cursor: "Cursor", ending: "Ending", *, follow: bool = True
) -> "Iterator[ReceivedEvent]":
    """Yield events until a signal or, without `follow`, the end of the past events; report gaps and reconnects."""
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
            say("the connection was lost and is restored")
        if event.skipped:
            lost = f"{event.skipped} before #{event.sequence} of {event.topic}"
            say(f"{lost} are no longer kept, or not visible to this user")
        yield event
