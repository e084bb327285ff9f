"""Options and helpers that the live commands share: the stage, the realm and the user to join as."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.shared import confirmation
from signalbox.cli.shared.stage import StageOptions, say
from signalbox.clients.live.session import JoinRefused, Login, PastOmitted
from signalbox.errors import RejectedError, SignalboxError
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.nearest import suggestion

if TYPE_CHECKING:
    from signalbox.cli.shared.signals import Ending
    from signalbox.clients.deployment import Deployment
    from signalbox.clients.live.client import LiveClient
    from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent

TICKET, USER, REALM = "SIGNALBOX_TICKET", "SIGNALBOX_USER", "SIGNALBOX_REALM"
PAGE = "SIGNALBOX_PAGE"
TOPICS = "signalbox.topics"
NO_SUCH_REALM = "wamp.error.no_such_realm"

Exchange = Annotated[
    str | None,
    typer.Option(
        "--exchange",
        help="Live exchange to join; on the local stage, the trial exchange by default.",
        metavar="NAME",
        envvar=REALM,
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        help=f"User to join as, with the ticket in {TICKET}; on the local stage, a trial user by default.",
        metavar="NAME",
        envvar=USER,
    ),
]
SignIn = Annotated[
    bool,
    typer.Option("--sign-in", help="Join as a user of the realm's identity provider; prints where to sign in."),
]
IssuerOption = Annotated[
    str | None,
    typer.Option(
        "--issuer",
        help="With --sign-in: label or URL of the identity provider, if the realm has several.",
        metavar="NAME",
    ),
]
Page = Annotated[
    str | None,
    typer.Option(
        "--page", help="Address of the stage's live page; needs no AWS credentials.", metavar="URL", envvar=PAGE
    ),
]


@dataclass(frozen=True, slots=True)
class JoinOptions(StageOptions):
    """The options for the stage, the realm and the user to join as."""

    exchange: Exchange = None
    user: User = None
    sign_in: SignIn = False
    issuer: IssuerOption = None
    page: Page = None


@contextmanager
def joining(access: JoinOptions) -> "Iterator[LiveClient]":
    """Provide a client that joins a realm at its first request."""
    from signalbox.clients.deployment import missing_output
    from signalbox.clients.live.client import LiveClient
    from signalbox.clients.web_socket import connector

    deployment = _deployment(access)
    if not deployment.websocket_url:
        raise RejectedError(missing_output(deployment.outputs, "LiveWebSocketUrl"))
    login = _login(deployment, access)
    try:
        with LiveClient(connector(deployment.websocket_url), login) as client:
            yield client
    except JoinRefused as error:
        raise JoinRefused(f"{error}{_near_realm(deployment, login.realm, error)}") from error


def _near_realm(deployment: "Deployment", realm: str, error: JoinRefused) -> str:
    """Return the realm that may be meant, if the error is about the realm."""
    if NO_SUCH_REALM not in str(error):
        return ""
    from signalbox.cli.live.sign_in import listed_realms

    return suggestion(realm, listed_realms(deployment))


def _deployment(access: JoinOptions) -> "Deployment":
    if access.page is None:
        return access.deployment()
    if access.aws:
        raise RejectedError("--page and --aws exclude each other: the page's address names the stage")
    from signalbox.cli.live.sign_in import deployment_of_page

    return deployment_of_page(access.page)


def _login(deployment: "Deployment", access: JoinOptions) -> Login:
    if not access.sign_in:
        if access.issuer is not None:
            raise RejectedError("--issuer needs --sign-in")
        return login_of(deployment, exchange=access.exchange, user=access.user)
    if access.user is not None:
        raise RejectedError(f"--sign-in and --user exclude each other: the token names the user (is {USER} set?)")
    realm = access.exchange or deployment.realm
    if not realm:
        raise RejectedError("--exchange must be given: name the live exchange to join")
    from signalbox.cli.live.sign_in import signed_in_login

    return signed_in_login(deployment, realm, access.issuer)


def login_of(deployment: "Deployment", *, exchange: str | None, user: str | None) -> Login:
    """Return the realm, user and ticket to join with; the defaults are the local stage's trial realm and user.

    Raises `RejectedError` for a ticket in the environment without its user: it is not sent for another one.
    """
    if user is None and os.environ.get(TICKET):
        raise RejectedError(f"{TICKET} is set, but not its user: set {USER} too, or give --user")
    realm = exchange or deployment.realm
    tickets = _tickets(deployment)
    name = user or next(iter(tickets), "")
    missing = [option for option, value in (("--exchange", realm), ("--user", name)) if not value]
    if missing:
        raise RejectedError(f"{' and '.join(missing)} must be given: there is no local stage with trial values")
    return Login(realm, name, _ticket(deployment, name))


def _tickets(deployment: "Deployment") -> Mapping[str, str]:
    from signalbox.clients.deployment import LocalDeployment

    return deployment.tickets if isinstance(deployment, LocalDeployment) else {}


def _ticket(deployment: "Deployment", user: str) -> str:
    found = os.environ.get(TICKET) or _tickets(deployment).get(user)
    if found:
        return found
    if confirmation.is_terminal():
        return str(typer.prompt(f"Ticket of {user}", hide_input=True, err=True))
    raise RejectedError(
        f"there is no ticket of user {user!r}: set {TICKET}; `signalbox user secret {user}` creates one"
    )


def events(
    client: "LiveClient", cursor: "PatternCursor", ending: "Ending", *, follow: bool = True
) -> "Iterator[ReceivedEvent]":
    """Yield events until a signal or, without `follow`, the end of the past events; report gaps and reconnects.

    Reports an empty past, too: the topic may be mistyped.
    """
    client.follow(cursor)
    is_empty = True
    for event in _noted(client, client.backfill(), ending):
        is_empty = False
        yield event
    if is_empty and not ending.is_due:
        with ending.waiting():
            _say_nothing_yet(client, cursor.pattern)
    if follow:
        yield from _noted(client, iter(client), ending)


def _noted(client: "LiveClient", source: "Iterator[ReceivedEvent]", ending: "Ending") -> "Iterator[ReceivedEvent]":
    """Yield events until a signal; report gaps, reconnects and past events that the router refuses."""
    connections = max(client.connections, 1)
    while not ending.is_due:
        event = None
        try:
            with ending.waiting():
                event = next(source, None)
        except PastOmitted as problem:
            say(str(problem))
            continue
        if event is None:
            return
        if client.connections > connections:
            connections = client.connections
            say("the connection was lost and is restored")
        if event.skipped:
            lost = f"{event.skipped} before #{event.sequence} of {event.topic}"
            say(f"{lost} are no longer kept, or not visible to this user")
        yield event


def _say_nothing_yet(client: "LiveClient", pattern: TopicPattern) -> None:
    kind = "" if pattern.match is MatchPolicy.EXACT else f"{pattern.match.value} "
    say(f"nothing yet on {kind}{pattern.uri!r} of {client.login.realm}{_near(client, pattern.uri)}")


def _near(client: "LiveClient", uri: str) -> str:
    """Return the topics that may be meant; nothing if the stage does not list them."""
    try:
        listed: Any = client.call(TOPICS).arguments[0]
        topics = [str(one["topic"]) for one in listed]
    except (SignalboxError, IndexError, KeyError, TypeError):
        return ""
    return suggestion(uri, (topic for topic in topics if topic != uri))
