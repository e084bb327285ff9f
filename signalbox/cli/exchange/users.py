"""`signalbox user`: who may use the exchanges, each with an identity of AWS."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from signalbox.cli.exchange.stage import stage_name
from signalbox.cli.shared.output import print_fields, print_json, print_line, print_table
from signalbox.cli.shared.stage import Aws, Json, Stage, age, output, say
from signalbox.errors import RejectedError
from signalbox.sarracenia.rights.permissions import Ownership, Role

if TYPE_CHECKING:
    from signalbox.aws.exchange.exchanges import DynamoUsers
    from signalbox.aws.exchange.users import AccessKey, ExchangeUsers
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.exchange.model.records import User
    from signalbox.sarracenia.rights.names import UserName

app = typer.Typer(help="Users of the exchanges, whose rights follow from names.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the user: letters, digits and '-'.", metavar="NAME")]


@app.callback()
def user() -> None:
    """Users of the exchanges, whose rights follow from names."""


@app.command()
def add(
    *,
    name: Name,
    role: Annotated[
        Role,
        typer.Option(help="What the user may do: all (admin, feeder), post and subscribe (source), or subscribe."),
    ],
    loose: Annotated[
        bool, typer.Option("--loose", help="As in Sarracenia, where the user alice owns what is alice2's, too.")
    ] = False,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Make a user and print the user's key, this once; or give a user who is there another role."""
    from signalbox.exchange.model.records import User

    ownership = Ownership.LOOSE if loose else Ownership.STRICT
    users = _Users.of(name, aws=aws, stage=stage)
    known = users.records.find(users.name)
    user_id = users.identities.make(users.name, role, ownership)
    created_at = known.created_at if known else datetime.now(UTC)
    users.records.put(User(users.name, role, ownership, created_at, user_id))
    document: dict[str, object] = {"user": name, "role": role.value, "ownership": ownership.value}
    # Without a key, somebody was made by a command that did not come to its end.
    if known is not None and known.user_id == user_id and users.identities.has_key(users.name):
        say(f"user {name!r} was there ({known.role}, {known.ownership}) and keeps the key; `user rotate` makes another")
        _print(document, as_json=as_json)
        return
    users.issue_key(document, as_json=as_json)


@app.command()
def rotate(*, name: Name, aws: Aws = False, stage: Stage = "signalbox", as_json: Json = False) -> None:
    """Make a new key for a user and print it, this once; the one before works until the next."""
    users = _Users.of(name, aws=aws, stage=stage)
    known = users.known()
    document: dict[str, object] = {"user": name, "role": known.role.value, "ownership": known.ownership.value}
    users.issue_key(document, as_json=as_json)
    say("the key before this one works until the next rotation")


@app.command(name="list")
def list_users(*, aws: Aws = False, stage: Stage = "signalbox", as_json: Json = False) -> None:
    """List the users and what they are."""
    from signalbox.cli.shared.deployment import find_deployment

    found = _records(find_deployment(aws=aws, stage=stage)).every()
    if as_json:
        print_json(
            [
                {
                    "user": one.name,
                    "role": one.role.value,
                    "ownership": one.ownership.value,
                    "created_at": one.created_at.isoformat(),
                }
                for one in found
            ]
        )
    elif found:
        rows = ((one.name, one.role.value, one.ownership.value, age(one.created_at.isoformat())) for one in found)
        print_table(["user", "role", "ownership", "age"], rows)
    else:
        print_line("no users but the administrators")


@app.command()
def remove(*, name: Name, aws: Aws = False, stage: Stage = "signalbox", as_json: Json = False) -> None:
    """Take a user and the user's keys away; exchanges and queues stay, and are the administrators'."""
    from signalbox.cli.shared.user_keys import forget_user_key

    users = _Users.of(name, aws=aws, stage=stage)
    known = users.records.find(users.name)
    users.identities.remove(users.name)
    users.records.remove(users.name)
    users.forget_secret()
    forget_user_key(users.deployment, users.name)
    if as_json:
        print_json({"user": name, "removed": known is not None})
    else:
        print_line(f"{name}  {'removed' if known else 'was not there'}")


@dataclass(frozen=True, slots=True)
class _Users:
    """One user of a stage, as an administrator sees it."""

    name: "UserName"
    deployment: "Deployment"
    identities: "ExchangeUsers"
    records: "DynamoUsers"

    @classmethod
    def of(cls, name: str, *, aws: bool, stage: str) -> "_Users":
        from signalbox.aws.exchange.users import ExchangeUsers
        from signalbox.cli.shared.deployment import find_deployment
        from signalbox.sarracenia.rights.names import parse_user_name

        parsed = parse_user_name(name)
        deployment = find_deployment(aws=aws, stage=stage)
        output(deployment, "ExchangeControlQueueUrl")
        identities = ExchangeUsers.of(deployment.session(), deployment.outputs)
        return cls(parsed, deployment, identities, _records(deployment))

    def known(self) -> "User":
        """Return the user's record, for what needs one."""
        found = self.records.find(self.name)
        if found is None:
            raise RejectedError(
                f"there is no user {self.name!r}: `signalbox user add {self.name} --role ROLE` makes one"
            )
        return found

    def forget_secret(self) -> None:
        """Let nobody join as the user any more, and those who have look at their rights, which are none now."""
        from signalbox.cli.exchange.stage import client_of

        # Without the record nothing more reaches them in any case, so nobody has to wait.
        client_of(self.deployment).send_command("forget_secret", {"user": self.name})

    def issue_key(self, document: Mapping[str, object], *, as_json: bool) -> None:
        """Make a key, keep it where commands find it, and print it."""
        from signalbox.aws.rendezvous.credentials import ClientCredentials
        from signalbox.cli.shared.user_keys import keep_user_key

        key = self.identities.new_key(self.name)
        kept = keep_user_key(self.deployment, self.name, ClientCredentials(key.access_key_id, key.secret_access_key))
        _print({**document, **self._key_document(key)}, as_json=as_json)
        say("the secret is not shown again" + ("" if kept is None else f"; commands find it in {kept}"))

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
        }


def _records(deployment: "Deployment") -> "DynamoUsers":
    from signalbox.aws.exchange.exchanges import DynamoUsers

    table = output(deployment, "ExchangeTable")
    return DynamoUsers(deployment.session().resource("dynamodb").Table(table))


def _print(document: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields({name.replace("_", " "): str(value) for name, value in document.items()})
