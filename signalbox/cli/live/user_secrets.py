"""The command `signalbox user secret`: new secrets with which users join realms."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from signalbox.cli.exchange.stage import UserOutputOptions, exchanges
from signalbox.cli.exchange.user_files import Names, Source, named_users
from signalbox.cli.shared.output import print_fields, print_json, print_table
from signalbox.cli.shared.stage import say
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.live.admin.commands import secret_fields
from signalbox.live.wamp.authentication import StoredSecret

# Both are too random to be guessed.
SECRET_BYTES, SALT_BYTES = 24, 16


@dataclass(frozen=True, slots=True)
class CreatedSecret:
    """A user's new secret, which is not stored anywhere, and the credentials that are."""

    user: str
    secret: str
    credentials: StoredSecret

    @classmethod
    def of(cls, user: str, *, wampcra: bool) -> "CreatedSecret":
        """Return a new random secret of a user."""
        created = secrets.token_urlsafe(SECRET_BYTES)
        return cls(user, created, StoredSecret.of(created, salt=secrets.token_hex(SALT_BYTES), with_key=wampcra))

    @property
    def fields(self) -> dict[str, object]:
        """Return the fields of the command `secret`."""
        return {"user": self.user, **secret_fields(self.credentials)}

    @property
    def document(self) -> dict[str, Any]:
        """Return the secret as JSON."""
        methods = sorted(method.value for method in self.credentials.methods)
        return {"user": self.user, "secret": self.secret, "methods": methods}


def secret(
    *,
    names: Names = None,
    source: Source = None,
    wampcra: Annotated[
        bool, typer.Option("--wampcra", help="Also permit wampcra; readers of the stage's table can then join as USER.")
    ] = False,
    options: UserOutputOptions,
) -> None:
    """Create and print a secret for each user, with which the user joins realms; it replaces an earlier one."""
    users = [str(one.name) for one in named_users(names or (), source)]
    with exchanges(options, says_where=True) as client:
        if source is None and len(users) == 1:
            created = CreatedSecret.of(users[0], wampcra=wampcra)
            client.ask("secret", created.fields)
            _print_one(created, as_json=options.as_json)
        else:
            _create_several(client, users, wampcra=wampcra, as_json=options.as_json)
    say("the secret is not shown again; sessions that joined with an earlier one end")


def replaced_secrets(
    client: ExchangeClient, users: Sequence[str], *, wampcra: bool = False
) -> Iterator[list[CreatedSecret]]:
    """Give users new secrets; yield each page of them once the stage has stored it."""
    from signalbox.live.admin.command_reader import MAXIMUM_SECRETS

    for start in range(0, len(users), MAXIMUM_SECRETS):
        page = [CreatedSecret.of(user, wampcra=wampcra) for user in users[start : start + MAXIMUM_SECRETS]]
        client.ask("secrets", {"secrets": [one.fields for one in page]})
        yield page


def _create_several(client: ExchangeClient, users: Sequence[str], *, wampcra: bool, as_json: bool) -> None:
    """Replace the secrets page by page, and print all that were replaced, also if a later page fails."""
    stored: list[CreatedSecret] = []
    try:
        for page in replaced_secrets(client, users, wampcra=wampcra):
            stored += page
    finally:
        if stored:
            _print_several(stored, as_json=as_json)


def _print_one(created: CreatedSecret, *, as_json: bool) -> None:
    if as_json:
        print_json(created.document)
    else:
        print_fields({**created.document, "methods": ", ".join(created.document["methods"])})


def _print_several(stored: Sequence[CreatedSecret], *, as_json: bool) -> None:
    documents = [one.document for one in stored]
    if as_json:
        print_json(documents)
    else:
        rows = ([one["user"], one["secret"], ", ".join(one["methods"])] for one in documents)
        print_table(["user", "secret", "methods"], rows)
