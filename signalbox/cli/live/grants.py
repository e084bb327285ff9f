"""`signalbox grant` and `signalbox user secret`: who may read and publish topics of a realm, and joins with what."""

import secrets
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.exchange.stage import User, exchanges
from signalbox.cli.shared.output import print_fields, print_json, print_line, print_table
from signalbox.cli.shared.stage import Aws, Json, Stage, say
from signalbox.live.wamp.patterns import MatchPolicy
from signalbox.sarracenia.rights.permissions import Right

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

app = typer.Typer(help="Topics of live exchanges that users may read or publish.", no_args_is_help=True)

# Both with more randomness than anybody could try through.
SECRET_BYTES, SALT_BYTES = 24, 16

Whose = Annotated[str, typer.Argument(help="Name of the user whose right it is.", metavar="USER")]
Realm = Annotated[str, typer.Argument(help="A live exchange, such as xs_alice.fifo.", metavar="EXCHANGE")]
Pattern = Annotated[
    str, typer.Argument(help="A topic, or what topics begin with, or one with holes: a..c.", metavar="PATTERN")
]
MatchOption = Annotated[MatchPolicy, typer.Option("--match", help="How the pattern is compared.")]
RightOption = Annotated[Right, typer.Option("--right", help="To subscribe (read) or to publish (write).")]


@app.callback()
def grant() -> None:
    """Topics of live exchanges that users may read or publish."""


@app.command()
def add(
    *,
    name: Whose,
    realm: Realm,
    pattern: Pattern,
    match: MatchOption = MatchPolicy.EXACT,
    right: RightOption = Right.READ,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Let a user subscribe, or publish, to the topics that a pattern matches, beside what the user's role allows."""
    with exchanges(aws=aws, stage=stage, user=user) as client:
        told = _told(client, "grant", _fields(name, realm, pattern, match=match, right=right))
    _print(told, as_json=as_json)
    if not told["granted"]:
        say("it was there already")


@app.command()
def remove(
    *,
    name: Whose,
    realm: Realm,
    pattern: Pattern,
    match: MatchOption = MatchPolicy.EXACT,
    right: RightOption = Right.READ,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Take a right away: nothing that is published from then on, and was open by it alone, reaches the user."""
    with exchanges(aws=aws, stage=stage, user=user) as client:
        told = _told(client, "ungrant", _fields(name, realm, pattern, match=match, right=right))
    _print(told, as_json=as_json)
    if not told["ungranted"]:
        say("it was not there")


@app.command(name="list")
def list_grants(
    *,
    name: Annotated[str | None, typer.Option("--of", help="Those of this user alone.", metavar="USER")] = None,
    realm: Annotated[str | None, typer.Option("--exchange", help="Those of this exchange alone.")] = None,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """List the grants that you have, and those of the exchanges that you may configure."""
    with exchanges(aws=aws, stage=stage, user=user) as client:
        found = client.ask("grants", {"user": name, "exchange": realm})
    assert isinstance(found, list)  # noqa: S101 - for mypy: so the stage tells it
    if as_json:
        print_json(found)
    elif found:
        columns = ["user", "exchange", "right", "match", "uri"]
        print_table([*columns[:-1], "topics"], ([str(one[column]) for column in columns] for one in found))
    else:
        print_line("no grants")


def secret(
    *,
    name: Whose,
    wampcra: Annotated[
        bool, typer.Option("--wampcra", help="For challenges, too; then whoever reads the stage's table can join so.")
    ] = False,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Draw a secret with which a user joins realms, in the place of an older one, and print it, this once."""
    from signalbox.live.admin.commands import secret_fields
    from signalbox.live.wamp.authentication import Credentials

    drawn = secrets.token_urlsafe(SECRET_BYTES)
    credentials = Credentials.of(drawn, salt=secrets.token_hex(SALT_BYTES), with_key=wampcra)
    with exchanges(aws=aws, stage=stage, user=user) as client:
        told = _told(client, "secret", {"user": name, **secret_fields(credentials)})
    shown = {"user": name, "secret": drawn, "methods": told["methods"]}
    if as_json:
        print_json(shown)
    else:
        print_fields({**shown, "methods": ", ".join(told["methods"])})
    say("the secret is not shown again; sessions that have joined go on")


def _fields(name: str, realm: str, pattern: str, *, match: MatchPolicy, right: Right) -> dict[str, object]:
    return {"user": name, "exchange": realm, "right": right.value, "match": match.value, "uri": pattern}


def _told(client: "ExchangeClient", command: str, fields: dict[str, object]) -> dict[str, Any]:
    told = client.ask(command, fields)
    assert isinstance(told, dict)  # noqa: S101 - for mypy: so the stage tells it
    return told


def _print(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(told)
    else:
        verb = "may" if "granted" in told else "may no more"
        print_line(f"{told['user']} {verb} {told['right']} {told['exchange']}  {told['match']} {told['uri']!r}")
