"""The command `signalbox grant`: rights to topics of a realm."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.exchange.stage import User, exchanges
from signalbox.cli.shared.output import print_json, print_line, print_table
from signalbox.cli.shared.stage import Aws, Json, Stage, say
from signalbox.errors import RejectedError
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri
from signalbox.queues import FIFO_SUFFIX
from signalbox.sarracenia.rights.permissions import Right

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

app = typer.Typer(help="Grant users the right to read or publish topics of live exchanges.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the user.", metavar="USER")]
Realm = Annotated[str, typer.Argument(help="A live exchange, such as xs_alice.fifo.", metavar="EXCHANGE")]
Pattern = Annotated[
    str, typer.Argument(help="A topic, a prefix of topics, or a wildcard with empty words: a..c.", metavar="PATTERN")
]
MatchOption = Annotated[MatchPolicy, typer.Option("--match", help="How PATTERN matches topics.")]
RightOption = Annotated[Right, typer.Option("--right", help="The right to subscribe (read) or to publish (write).")]


@app.callback()
def grant() -> None:
    """Grant users the right to read or publish topics of live exchanges."""


@app.command()
def add(
    *,
    name: Name,
    realm: Realm,
    pattern: Pattern,
    match: MatchOption = MatchPolicy.EXACT,
    right: RightOption = Right.READ,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Grant a user topics that a pattern matches, in addition to the rights of the user's role."""
    with exchanges(aws=aws, stage=stage, user=user, says_where=True) as client:
        result = _asked(client, "grant", _fields(name, realm, pattern, match=match, right=right))
    _print(result, as_json=as_json)
    if not result["granted"]:
        say("the grant existed before")


@app.command()
def remove(
    *,
    name: Name,
    realm: Realm,
    pattern: Pattern,
    match: MatchOption = MatchPolicy.EXACT,
    right: RightOption = Right.READ,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Remove a grant: events that are published later, and were visible by it alone, do not reach the user."""
    with exchanges(aws=aws, stage=stage, user=user, says_where=True) as client:
        result = _asked(client, "ungrant", _fields(name, realm, pattern, match=match, right=right))
    _print(result, as_json=as_json)
    if not result["ungranted"]:
        say("there was no such grant")


@app.command(name="list")
def list_grants(
    *,
    name: Annotated[str | None, typer.Option("--of", help="List only the grants of this user.", metavar="USER")] = None,
    realm: Annotated[str | None, typer.Option("--exchange", help="List only the grants on this exchange.")] = None,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """List your grants, and the grants on exchanges that you may configure."""
    with exchanges(aws=aws, stage=stage, user=user) as client:
        found = client.ask("grants", {"user": name, "exchange": realm})
    assert isinstance(found, list)  # noqa: S101 - for mypy: the command's result
    if as_json:
        print_json(found)
    elif found:
        columns = ["user", "exchange", "right", "match", "uri"]
        print_table([*columns[:-1], "topics"], ([str(one[column]) for column in columns] for one in found))
    else:
        print_line("no grants")


def _fields(name: str, realm: str, pattern: str, *, match: MatchPolicy, right: Right) -> dict[str, object]:
    if not realm.endswith(FIFO_SUFFIX):
        raise RejectedError(
            f"exchange {realm!r} is not live: only an ordered exchange, whose name ends with {FIFO_SUFFIX}, can be"
        )
    try:
        TopicPattern.parse(pattern, match)
    except InvalidUri as error:
        raise InvalidUri(f"PATTERN: {error}") from error
    return {"user": name, "exchange": realm, "right": right.value, "match": match.value, "uri": pattern}


def _asked(client: "ExchangeClient", command: str, fields: dict[str, object]) -> dict[str, Any]:
    result = client.ask(command, fields)
    assert isinstance(result, dict)  # noqa: S101 - for mypy: the command's result
    return result


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        verb = "may" if "granted" in result else "may no longer"
        print_line(
            f"{result['user']} {verb} {result['right']} {result['exchange']}  {result['match']} {result['uri']!r}"
        )
