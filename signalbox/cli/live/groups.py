"""The command `signalbox group`: the groups of the stage, whose members get the grants to `@GROUP` in a realm."""

from typing import Annotated

import typer

from signalbox.cli.exchange.stage import Document, UserOptions, UserOutputOptions, exchanges
from signalbox.cli.live.changes import check_realm, print_dry_run
from signalbox.cli.live.grants import DryRun, Realm
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json, print_line, print_list

app = CommandGroup("Change and list groups of users; grants name a group as @GROUP.")

Group = Annotated[str, typer.Argument(help="Name of the group, without @.", metavar="GROUP")]
Users = Annotated[list[str], typer.Argument(help="Names of users.", metavar="USER...")]


@app.command()
def add(
    *,
    realm: Realm,
    name: Group,
    users: Users,
    dry_run: DryRun = False,
    options: UserOutputOptions,
) -> None:
    """Add users to a group of a live exchange."""
    result = _changed("group_add", realm, name, users, options, dry_run=dry_run)
    _print(result, ("is now in", "was already in"), as_json=options.as_json)


@app.command()
def remove(
    *,
    realm: Realm,
    name: Group,
    users: Users,
    dry_run: DryRun = False,
    options: UserOutputOptions,
) -> None:
    """Remove users from a group: they receive no later event that only grants of the group permitted."""
    result = _changed("group_remove", realm, name, users, options, dry_run=dry_run)
    _print(result, ("is no longer in", "was not in"), as_json=options.as_json)


@app.command(name="list")
def list_groups(
    *,
    realm: Realm,
    name: Annotated[str | None, typer.Argument(help="List only this group.", metavar="GROUP")] = None,
    options: UserOutputOptions,
) -> None:
    """List the members of groups of a live exchange that you may configure, or your own groups there."""
    check_realm(realm)
    with exchanges(options) as client:
        found = client.ask_list("groups", {"exchange": realm, "group": name})
    rows = ([one["group"], one["user"]] for one in found)
    print_list(found, ["group", "user"], rows, none="no members", as_json=options.as_json)


def _changed(
    command: str, realm: str, group: str, users: list[str], options: UserOptions, *, dry_run: bool
) -> Document:
    check_realm(realm)
    fields = {"exchange": realm, "group": group, "users": users, **({"dry_run": True} if dry_run else {})}
    with exchanges(options, says_where=True) as client:
        return client.ask_object(command, fields)


def _print(result: Document, verbs: tuple[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    elif "dry_run" in result:
        print_dry_run(result)
    else:
        for field, verb in zip(("changed", "unchanged"), verbs, strict=True):
            for one in result[field]:
                print_line(f"{one} {verb} {result['group']} of {result['exchange']}")
