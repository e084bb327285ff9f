"""The command `signalbox grant`: rights to topics of a realm."""

from dataclasses import dataclass
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import Document, UserOutputOptions, exchanges
from signalbox.cli.live.changes import check_realm, print_dry_run
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json, print_line, print_list
from signalbox.cli.shared.stage import say
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.live.rights.coverage import check_placeholders
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri
from signalbox.nearest import suggestion
from signalbox.sarracenia.rights.permissions import Right

app = CommandGroup("Manage rights to topics of live exchanges: grant, deny, list and explain.")

Name = Annotated[str, typer.Argument(help="Name of the user.", metavar="USER")]
Realm = Annotated[str, typer.Argument(help="A live exchange, such as xs_alice.fifo.", metavar="EXCHANGE")]
RightOption = Annotated[Right, typer.Option("--right", help="The right to subscribe (read) or to publish (write).")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, and show the subscriptions that would change.")
]


@dataclass(frozen=True, slots=True)
class GrantOptions:
    """The arguments and options that name a grant or a deny."""

    name: Annotated[str, typer.Argument(help="A user, @GROUP, or @everyone.", metavar="USER")]
    realm: Realm
    pattern: Annotated[
        str,
        typer.Argument(
            help="A topic, a prefix, or a wildcard with empty words: a..c. The words {user} and {group} are the user's "
            "own name and groups.",
            metavar="PATTERN",
        ),
    ]
    match: Annotated[MatchPolicy, typer.Option(help="How PATTERN matches topics.")] = MatchPolicy.EXACT
    right: RightOption = Right.READ
    dry_run: DryRun = False

    def fields(self, *, deny: bool) -> dict[str, object]:
        """Return the fields of the command. Raises `RejectedError`."""
        check_realm(self.realm)
        try:
            check_placeholders(TopicPattern.parse(self.pattern, self.match))
        except InvalidUri as error:
            raise InvalidUri(f"PATTERN: {error}") from error
        fields: dict[str, object] = {
            "user": self.name,
            "exchange": self.realm,
            "right": self.right.value,
            "match": self.match.value,
            "uri": self.pattern,
        }
        return {**fields, **({"deny": True} if deny else {}), **({"dry_run": True} if self.dry_run else {})}


@app.command()
def add(
    *,
    grant: GrantOptions,
    deny: Annotated[
        bool, typer.Option("--deny", help="Take the right away: a deny wins over grants and roles.")
    ] = False,
    options: UserOutputOptions,
) -> None:
    """Grant a user or group the topics that a pattern matches, in addition to the role's rights; or deny them."""
    fields = grant.fields(deny=deny)
    with exchanges(options, says_where=True) as client:
        result = client.ask_object("grant", fields)
    _print(result, as_json=options.as_json)
    if not result.get("granted", True):
        say(f"the {'deny' if deny else 'grant'} existed before")


@app.command()
def remove(
    *,
    grant: GrantOptions,
    deny: Annotated[bool, typer.Option("--deny", help="Remove a deny.")] = False,
    options: UserOutputOptions,
) -> None:
    """Remove a grant: the user receives no later event that only this grant permitted."""
    fields = grant.fields(deny=deny)
    with exchanges(options, says_where=True) as client:
        result = client.ask_object("ungrant", fields)
        is_missing = not result.get("ungranted", True)
        hint = _near(client, fields) if is_missing and not options.as_json else ""
    if not is_missing or options.as_json:
        _print(result, as_json=options.as_json)
    if is_missing:
        say(f"there was no such {'deny' if deny else 'grant'}{hint}")


@app.command(name="list")
def list_grants(
    *,
    name: Annotated[
        str | None, typer.Option("--of", help="List only the grants of this user or @GROUP.", metavar="USER")
    ] = None,
    realm: Annotated[str | None, typer.Option("--exchange", help="List only the grants on this exchange.")] = None,
    options: UserOutputOptions,
) -> None:
    """List your grants, those of your groups, and those on exchanges that you may configure."""
    with exchanges(options) as client:
        found = client.ask_list("grants", {"user": name, "exchange": realm})
    columns = ["user", "exchange", "right", "match", "uri"]
    rows = (["deny" if one.get("deny") else "grant", *(str(one[name]) for name in columns)] for one in found)
    print_list(found, ["", *columns[:-1], "topics"], rows, none="no grants", as_json=options.as_json)


@app.command()
def explain(
    *,
    name: Name,
    topic: Annotated[str, typer.Argument(help="The topic.", metavar="TOPIC")],
    realm: Annotated[
        str | None, typer.Option("--exchange", help="Explain only for this live exchange.", metavar="EXCHANGE")
    ] = None,
    right: RightOption = Right.READ,
    groups: Annotated[
        str | None,
        typer.Option("--groups", help="The groups in the token of an identity provider's user: a,b.", metavar="A,B"),
    ] = None,
    options: UserOutputOptions,
) -> None:
    """Explain which grant, deny, role or ownership permits or refuses a topic, and why the others do not apply."""
    listed = None if groups is None else [group for group in groups.split(",") if group]
    fields = {"user": name, "topic": topic, "exchange": realm, "right": right.value, "groups": listed}
    with exchanges(options) as client:
        found = client.ask_list("explain", fields)
    if options.as_json:
        print_json(found)
    elif found:
        for one in found:
            _print_explanation(one)
    else:
        print_line("no live exchange that you may configure")


def _near(client: ExchangeClient, fields: dict[str, object]) -> str:
    """Return the pattern that may be meant, of the grants to the same user on the same exchange."""
    found = client.ask_list("grants", {"user": fields["user"], "exchange": fields["exchange"]})
    return suggestion(str(fields["uri"]), [str(one["uri"]) for one in found])


def _print(result: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    if "dry_run" in result:
        print_dry_run(result)
        return
    verb = VERBS["granted" in result, "deny" in result]
    print_line(f"{result['user']} {verb} {result['right']} {result['exchange']}  {result['match']} {result['uri']!r}")


def _print_explanation(one: Document) -> None:
    verb = "may" if one["permitted"] else "may not"
    print_line(f"{one['user']} {verb} {one['right']} {one['topic']!r} of {one['exchange']}")
    for reason in one["reasons"]:
        grant = f"  {reason['user']} {reason['match']} {reason['uri']!r}" if "uri" in reason else ""
        print_line(f"  {EFFECTS[reason['effect']]:<7} {reason['kind']:<9} {reason['why']}{grant}")
    if one["more"]:
        print_line(f"  and {one['more']} more that do not apply")


# By whether something was added, and whether it is a deny.
VERBS = {
    (True, False): "may",
    (False, False): "may no longer",
    (True, True): "is denied to",
    (False, True): "is no longer denied to",
}
EFFECTS = {"permits": "permits", "refuses": "refuses", "none": "-"}
