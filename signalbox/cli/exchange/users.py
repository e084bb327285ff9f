"""`signalbox user`: manages the users of the exchange and of live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

import typer

from signalbox.cli.exchange.former_users import confirm_ownership
from signalbox.cli.exchange.live_only import DEFAULT_ROLE, LiveOnlyUsers, live_only_document
from signalbox.cli.exchange.stage import stage_name
from signalbox.cli.exchange.user_files import Names, Source, named_users
from signalbox.cli.shared import settling
from signalbox.cli.shared.confirmation import Yes, confirm
from signalbox.cli.shared.lazy_group import Part, group_of
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_fields, print_json, print_line, print_list
from signalbox.cli.shared.stage import OutputOptions, StageOptions, age, output, say
from signalbox.errors import RejectedError
from signalbox.nearest import suggestion
from signalbox.sarracenia.rights.permissions import Ownership, Role

if TYPE_CHECKING:
    from signalbox.aws.exchange.exchanges import DynamoUsers
    from signalbox.aws.exchange.users import AccessKey, ExchangeUsers
    from signalbox.clients.deployment import Deployment
    from signalbox.exchange.model.records import User
    from signalbox.sarracenia.rights.names import UserName

COMMANDS = group_of(
    Part(
        "secret",
        "signalbox.cli.live.user_secrets:secret",
        "Create and print a secret for each user, with which the user joins realms; it replaces an earlier one.",
    ),
)
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
            help=f"Only for live: without IAM user, keys and control queue; several at once; role {DEFAULT_ROLE}.",
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

    users = _Users.of(name, options)
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
        _print({**document, **users.queues()}, as_json=options.as_json)
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
    users = _Users.of(named[0].name, options)
    live_only = LiveOnlyUsers(users.deployment, users.identities, users.records)
    added = live_only.add(named, role=role or DEFAULT_ROLE, ownership=ownership, yes=yes, as_json=options.as_json)
    documents = [live_only_document(one) for one in added]
    if source is None and len(documents) == 1:
        _print(documents[0], as_json=options.as_json)
    elif options.as_json:
        print_json(documents)
    else:
        print_line(f"{len(documents):,} live-only users")
    say(f"in {users.deployment.place}")


@app.command()
def rotate(*, name: Name, options: OutputOptions) -> None:
    """Create and print a new access key of a user; the previous key works until the next rotation."""
    users = _Users.of(name, options)
    known = users.known()
    document: dict[str, object] = {"user": name, "role": known.role.value, "ownership": known.ownership.value}
    users.issue_key(document, as_json=options.as_json)
    say("the previous key works until the next rotation")


@app.command(name="list")
def list_users(*, options: OutputOptions) -> None:
    """List the users with their roles."""
    records = _records(options.deployment())
    found = sorted([*records.every(), *records.live_only()], key=lambda one: one.name)
    columns = ["user", "role", "ownership", "live only", "age"]
    none = "no users except the administrators"
    print_list(list(map(_document, found)), columns, map(_row, found), none=none, as_json=options.as_json)


def _document(one: "User") -> dict[str, object]:
    return {
        "user": one.name,
        "role": one.role.value,
        "ownership": one.ownership.value,
        "live_only": one.is_live_only,
        "created_at": one.created_at.isoformat(),
    }


def _row(one: "User") -> Sequence[str]:
    live_only = "yes" if one.is_live_only else "no"
    return (one.name, one.role.value, one.ownership.value, live_only, age(one.created_at.isoformat()))


@app.command()
def remove(*, name: Name, yes: Yes = False, options: OutputOptions) -> None:
    """Delete a user with all access keys, after a question; the user's exchanges and queues stay, unbound."""
    from signalbox.cli.shared.user_keys import forget_user_key

    users = _Users.of(name, options)
    known = users.records.find(users.name)
    keys = "" if known is not None and known.is_live_only else " with all keys"
    question = f"Delete user {name!r} of {users.deployment.place}{keys}? Programs of this user stop working."
    confirm(question, yes=yes or known is None, as_json=options.as_json)
    # Also of a live-only user: an interrupted change of its kind may have left an identity.
    users.identities.remove(users.name)
    users.records.remove(users.name)
    forget_user_key(users.deployment, users.name)
    ended = users.end_rights()
    left = users.unbind(before=known)
    if options.as_json:
        print_json({"user": name, "removed": known is not None, "ended": ended, **left})
    else:
        hint = "" if known else suggestion(name, users.names())
        print_line(f"{name}  {'removed' if known else 'did not exist'}{hint}")
        for one in ended:
            groups = f", groups {', '.join(one['groups'])}" if one["groups"] else ""
            print_line(f"rights in {one['exchange']} ended: {one['grants']} grants, {one['denies']} denies{groups}")
        for one in left["unbound"]:
            print_line(_unbound(one))
        if names := [*left["queues"], *left["exchanges"]]:
            print_line(f"stays, for the next user of this name: {', '.join(names)}")
    say(f"in {users.deployment.place}")


@dataclass(frozen=True, slots=True)
class _Users:
    """A user of a stage, with an administrator's access to IAM and to the records."""

    name: "UserName"
    deployment: "Deployment"
    identities: "ExchangeUsers"
    records: "DynamoUsers"

    @classmethod
    def of(cls, name: str, options: StageOptions) -> "_Users":
        from signalbox.aws.exchange.users import ExchangeUsers
        from signalbox.sarracenia.rights.names import parse_user_name

        parsed = parse_user_name(name)
        deployment = options.deployment()
        output(deployment, "ExchangeControlQueueUrl")
        identities = ExchangeUsers.of(deployment.session(), deployment.outputs)
        return cls(parsed, deployment, identities, _records(deployment))

    def known(self) -> "User":
        """Return the user's record. Raises `RejectedError` if it does not exist."""
        found = self.records.find(self.name)
        if found is None:
            hint = suggestion(self.name, self.names())
            raise RejectedError(
                f"user {self.name!r} does not exist: `signalbox user add {self.name} --role ROLE` creates it{hint}"
            )
        if found.is_live_only:
            raise RejectedError(
                f"user {self.name!r} only joins live and has no key: `signalbox user add {self.name} --role "
                f"{found.role}` creates one"
            )
        return found

    def names(self) -> list[str]:
        """Return the names of all users, also of those that only join live."""
        return [str(one.name) for one in (*self.records.every(), *self.records.live_only())]

    def end_rights(self) -> list[dict[str, Any]]:
        """End the secret, the sessions and the rights of the removed user in all realms; return the ended rights."""
        from signalbox.cli.exchange.stage import client_of

        reply = cast(
            "dict[str, list[dict[str, Any]]]", client_of(self.deployment).ask("forget_user", {"user": self.name})
        )
        return reply["ended"]

    def unbind(self, *, before: "User | None" = None) -> dict[str, list[Any]]:
        """Remove bindings to the user's queues and exchanges; return these, and the names of the others.

        Those of a removed user; or those from exchanges that a user may not read any more with another role.
        """
        from signalbox.cli.exchange.stage import client_of

        earlier = {} if before is None else {"role": before.role.value, "ownership": before.ownership.value}
        fields = {"user": self.name, **earlier}
        reply = cast("dict[str, list[Any]]", client_of(self.deployment).ask("unbind_user", fields))
        return {name: reply[name] for name in ("unbound", "queues", "exchanges")}

    def issue_key(self, document: Mapping[str, object], *, as_json: bool) -> None:
        """Create an access key, store it for other commands, and print it."""
        from signalbox.aws.rendezvous.credentials import ClientCredentials
        from signalbox.cli.shared.user_keys import keep_user_key

        key = self.identities.new_key(self.name)
        kept = keep_user_key(self.deployment, self.name, ClientCredentials(key.access_key_id, key.secret_access_key))
        _print({**document, **self._key_document(key)}, as_json=as_json)
        say("the secret is not shown again" + ("" if kept is None else f"; commands find it in {kept}"))
        say(f"in {self.deployment.place}")

    def _key_document(self, key: "AccessKey") -> dict[str, object]:
        from signalbox.sarracenia.broker_url import Broker

        stage = stage_name(self.deployment.outputs["ExchangeControlQueueUrl"])
        endpoint = self.deployment.session().client("sqs").meta.endpoint_url
        host, region = urlsplit(endpoint).netloc, self.deployment.region
        broker = Broker(self.name, host, stage, key.access_key_id, key.secret_access_key, region)
        return {
            "access_key_id": key.access_key_id,
            "secret_access_key": key.secret_access_key,
            "broker": broker.url,
            "credentials_conf": broker.url_with_key,
            **self.queues(),
        }

    def queues(self) -> dict[str, str]:
        """Return the URLs of the user's control queue and reply queue."""
        names, prefix = self.identities.control_queues.names, self.identities.control_queues.administrators_url
        own = {"control_queue": names.control_queue(self.name), "reply_queue": names.reply_queue(self.name)}
        return {kind: f"{prefix.rpartition('/')[0]}/{name}" for kind, name in own.items()}


def _unbound(binding: Mapping[str, Any]) -> str:
    return f"binding of {binding['exchange']} to {binding.get('queue') or binding['destination']} removed"


def _records(deployment: "Deployment") -> "DynamoUsers":
    from signalbox.aws.exchange.exchanges import DynamoUsers

    table = output(deployment, "ExchangeTable")
    return DynamoUsers(deployment.session().resource("dynamodb").Table(table))


def _print(document: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields({name.replace("_", " "): str(value) for name, value in document.items()})
