"""`signalbox user`: manages the users of the exchange and of live."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from signalbox.cli.exchange.live_only import DEFAULT_ROLE, LiveOnlyUsers, confirm_ownership, live_only_document
from signalbox.cli.exchange.user_admin import UserAdmin, print_user, user_records
from signalbox.cli.exchange.user_files import Names, Source, named_users
from signalbox.cli.shared import settling
from signalbox.cli.shared.confirmation import Yes, confirm
from signalbox.cli.shared.lazy_group import group_of
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json, print_line, print_list
from signalbox.cli.shared.stage import OutputOptions, age, say
from signalbox.cli.shared.user_keys import forget_user_key
from signalbox.errors import RejectedError
from signalbox.exchange.model.records import User
from signalbox.nearest import suggestion
from signalbox.sarracenia.rights.permissions import Ownership, Role

COMMANDS = group_of(("secret", "live.user_secrets:secret"))
app = CommandGroup("Manage users; a user's rights follow from the user's name.", cls=COMMANDS)

Name = Annotated[str, typer.Argument(help="Name of the user: letters, digits and '-'.", metavar="NAME")]


@app.command()
def add(
    *,
    names: Names = None,
    role: Annotated[
        Role | None,
        typer.Option(
            help="Role: all rights (admin, feeder), publish and subscribe (source), or subscribe only; "
            "required without --live.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help=f"Add users who only join live, without IAM user, key and control queue; default role {DEFAULT_ROLE}.",
        ),
    ] = False,
    source: Source = None,
    loose: Annotated[
        bool, typer.Option("--loose", help="Match names as Sarracenia does: user alice owns alice2's resources too.")
    ] = False,
    yes: Yes = False,
    options: OutputOptions,
) -> None:
    """Create a user and print the access key once, or change the role of an existing user."""
    ownership = Ownership.LOOSE if loose else Ownership.STRICT
    if live:
        _add_live_only(names or (), source, options, role=role, ownership=ownership, yes=yes)
        return
    if role is None:
        raise RejectedError("--role is missing: only users added with --live have a default role")
    if source is not None or names is None or len(names) != 1:
        raise RejectedError("name one user, who gets a key of their own: only --live adds several users at once")
    _add_with_key(names[0], role, ownership, yes=yes, options=options)


def _add_with_key(name: str, role: Role, ownership: Ownership, *, yes: bool, options: OutputOptions) -> None:
    from signalbox.aws.exchange.users import register

    users = UserAdmin.of(name, options)
    known = users.records.find(users.name)
    if known is None:
        confirm_ownership(users.identities, [users.name], ownership, yes=yes, as_json=options.as_json)
    added = register(users.identities, users.records, users.name, role=role, ownership=ownership, now=datetime.now(UTC))
    if known is not None and (known.role, known.ownership) != (role, ownership):
        settling.wait_until_rights_settle(users.records)
        for one in users.unbind(before=known)["unbound"]:
            say(_unbound(one))
    document: dict[str, object] = {"user": name, "role": role.value, "ownership": ownership.value}
    # A user without a key was created by a command that did not finish.
    if known is not None and known.user_id == added.user_id and users.identities.has_key(users.name):
        say(f"user {name!r} existed ({known.role}, {known.ownership}) and keeps the key; `user rotate` creates another")
        print_user({**document, **users.queues()}, as_json=options.as_json)
        say(f"in {users.deployment.place}")
        return
    users.issue_key(document, as_json=options.as_json)


def _add_live_only(
    names: Sequence[str],
    source: Path | None,
    options: OutputOptions,
    *,
    role: Role | None,
    ownership: Ownership,
    yes: bool,
) -> None:
    named = named_users(names, source)
    users = UserAdmin.of(named[0].name, options)
    live_only = LiveOnlyUsers(users.deployment, users.identities, users.records)
    added = live_only.add(named, role=role or DEFAULT_ROLE, ownership=ownership, yes=yes, as_json=options.as_json)
    documents = [live_only_document(one) for one in added]
    if source is None and len(documents) == 1:
        print_user(documents[0], as_json=options.as_json)
    elif options.as_json:
        print_json(documents)
    else:
        print_line(f"{len(documents):,} live-only users")
    say(f"in {users.deployment.place}")


@app.command()
def rotate(*, name: Name, options: OutputOptions) -> None:
    """Create and print a new access key of a user; the previous key works until the next rotation."""
    users = UserAdmin.of(name, options)
    known = users.known()
    document: dict[str, object] = {"user": name, "role": known.role.value, "ownership": known.ownership.value}
    key = users.issue_key(document, as_json=options.as_json)
    users.records.put(replace(known, commands_from=key.created_at))
    say("the previous key works until the next rotation; `signalbox user secret` replaces the secret of live")


@app.command(name="list")
def list_users(*, options: OutputOptions) -> None:
    """List the users with their roles."""
    records = user_records(options.deployment())
    found = sorted([*records.every(), *records.live_only()], key=lambda one: one.name)
    columns = ["user", "role", "ownership", "live only", "age"]
    none = "no users except the administrators"
    print_list(list(map(_document, found)), columns, map(_row, found), none=none, as_json=options.as_json)


def _document(one: User) -> dict[str, object]:
    return {
        "user": one.name,
        "role": one.role.value,
        "ownership": one.ownership.value,
        "live_only": one.is_live_only,
        "created_at": one.created_at.isoformat(),
    }


def _row(one: User) -> Sequence[str]:
    live_only = "yes" if one.is_live_only else "no"
    return (one.name, one.role.value, one.ownership.value, live_only, age(one.created_at.isoformat()))


@app.command()
def remove(*, name: Name, yes: Yes = False, options: OutputOptions) -> None:
    """Delete a user with all access keys, after a question; the user's exchanges and queues stay, unbound."""
    users = UserAdmin.of(name, options)
    known = users.records.find(users.name)
    keys = "" if known is not None and known.is_live_only else " with all keys"
    question = f"Delete user {name!r} of {users.deployment.place}{keys}? Programs of this user stop working."
    confirm(question, yes=yes or known is None, as_json=options.as_json)
    # Also of a live-only user: an interrupted change of its kind may have left an identity.
    users.identities.remove(users.name)
    # While the record has the name, no token of it is accepted; once it is gone, no late command stores a secret.
    ended = users.end_rights()
    users.records.remove(users.name)
    users.end_rights()
    forget_user_key(users.deployment, users.name)
    left = users.unbind(before=known)
    if options.as_json:
        print_json({"user": name, "removed": known is not None, "ended": ended["ended"], **left})
    else:
        hint = "" if known else suggestion(name, users.names())
        print_line(f"{name}  {'removed' if known else 'did not exist'}{hint}")
        for one in ended["ended"]:
            groups = f", groups {', '.join(one['groups'])}" if one["groups"] else ""
            print_line(f"rights in {one['exchange']} ended: {one['grants']} grants, {one['denies']} denies{groups}")
        for one in left["unbound"]:
            print_line(_unbound(one))
        if names := [*left["queues"], *left["exchanges"]]:
            print_line(f"stays, for the next user of this name: {', '.join(names)}")
        if unlisted := left.get("unlisted", 0) + ended.get("unlisted", 0):
            print_line(f"{unlisted} more are not listed: the history has each binding and realm")
    say(f"in {users.deployment.place}")


def _unbound(binding: Mapping[str, Any]) -> str:
    to = binding.get("queue") or binding["destination"]
    return f"binding of {binding['exchange']} to {to} by {binding['pattern']} removed"
