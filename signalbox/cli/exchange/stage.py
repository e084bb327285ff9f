"""Shared parts of the exchange's commands: the client of the stage, durations and output."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.exchange.names import name_hint, nearest_names
from signalbox.cli.shared.confirmation import confirm
from signalbox.cli.shared.output import print_fields, print_json, print_line
from signalbox.cli.shared.stage import Json, StageOptions, local_time, output, say
from signalbox.cli.shared.user_keys import user_key
from signalbox.errors import RejectedError
from signalbox.exchange.model.names import CONTROL_MARK
from signalbox.sarracenia.rights.names import parse_user_name

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment
    from signalbox.clients.exchange.client import ExchangeClient

User = Annotated[
    str | None,
    typer.Option(
        "--user",
        help="Act as this user: locally with the key that `user add` stored, in AWS with your default credentials.",
        metavar="NAME",
    ),
]


@dataclass(frozen=True, slots=True)
class UserOptions(StageOptions):
    """The options that name a stage and a user of it."""

    user: User = None


@dataclass(frozen=True, slots=True)
class UserOutputOptions(UserOptions):
    """The options that name a stage and a user of it, and the one that selects JSON."""

    as_json: Json = False


Document = Mapping[str, Any]  # a reply of the stage; docs/exchange.md has the fields

NEVER = "never"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}


@contextmanager
def exchanges(options: UserOptions, *, says_where: bool = False, begins: str = "") -> "Iterator[ExchangeClient]":
    """Yield a client of a stage's exchanges.

    With `says_where`, print the stage when the context ends without error. With `begins`, the name of what the command
    reads, print that and the stage at the beginning: such a command may run until it is interrupted.
    """
    client, place = _client_and_place(options)
    where = place + ("" if options.user is None else f", as user {options.user}")
    if begins:
        say(f"{begins} in {where}")
    with nearest_names(client):
        yield client
    if says_where:
        say(f"in {where}")


@contextmanager
def deleting(what: str, options: UserOutputOptions, *, lost: str, yes: bool) -> "Iterator[ExchangeClient]":
    """Yield a client after a yes to the deletion of `what` with all that is `lost`. Raises `RejectedError`."""
    client, place = _client_and_place(options)
    confirm(f"Delete {what} of {place} with its {lost}?", yes=yes, as_json=options.as_json)
    with nearest_names(client):
        yield client
    say(f"in {place}")


def _client_and_place(options: UserOptions) -> "tuple[ExchangeClient, str]":
    if options.aws and options.user is not None:
        client = _user_in_aws(options.user, stage=options.stage)
        return client, f"stage {options.stage} in account {client.url_prefix.rstrip('/').rpartition('/')[2]}"
    deployment = options.deployment()
    return client_of(deployment, user=options.user), deployment.place


def client_of(deployment: "Deployment", *, user: str | None = None) -> "ExchangeClient":
    """Return the client of a deployment's administrator, or of a user whose key is stored on this machine."""
    from signalbox.clients.exchange.client import stage_client

    output(deployment, "ExchangeControlQueueUrl")  # named in the error of a stage without an exchange
    if user is None:
        return stage_client(deployment.session().client("sqs"), deployment.outputs)
    name = parse_user_name(user)
    session = deployment.session_of(user_key(deployment, name))
    return stage_client(session.client("sqs"), deployment.outputs, user=name)


def stage_name(control_queue: str) -> str:
    """Return the stage of an administrators' control queue, given by name or by URL."""
    return control_queue.rpartition("/")[2].removesuffix(CONTROL_MARK)


def _user_in_aws(user: str, *, stage: str) -> "ExchangeClient":
    from signalbox.cli.shared.deployment import aws_session
    from signalbox.clients.exchange.client import user_client

    # A user may not read the stack, so its outputs are not used.
    return user_client(aws_session().client("sqs"), user, stage=stage)


def seconds(text: str | None, option: str) -> int | None:
    """Return a duration such as `90`, `5m` or `never` in seconds; `never` is 0, and None stays None."""
    if text is None:
        return None
    if text == NEVER:
        return 0
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    if number.isascii() and number.isdigit():
        return int(number) * UNITS[unit]
    units = ", ".join(UNITS)
    raise RejectedError(f"{option}: expected a number of seconds, one with a unit ({units}) or {NEVER}, not {text!r}")


def duration_text(value: object) -> str:
    """Return a number of seconds as a duration with a unit; None is `never`."""
    if not isinstance(value, int):
        return NEVER
    unit, size = max(((unit, size) for unit, size in UNITS.items() if value % size == 0), key=lambda one: one[1])
    return f"{value // size}{unit}"


def print_resource(document: Document, *, as_json: bool) -> None:
    """Print the document of an exchange or a queue."""
    if as_json:
        print_json(dict(document))
    else:
        print_fields({name.replace("_", " "): _text(name, value) for name, value in document.items()})


def _text(name: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_text(key, one)}" for key, one in value.items()) or "-"
    if isinstance(value, list):
        return "; ".join(_text(name, one) for one in value) or "-"
    if name.endswith("_seconds"):
        return duration_text(value)
    return local_time(value) if name.endswith("_at") else str(value)


def note_sqs_name(document: Document, name: str) -> None:
    """Print the name of a queue in SQS if it differs."""
    if document.get("sqs_name", name) != name:
        say(f"SQS does not allow the name {name!r}: in SQS the queue is {document['sqs_name']!r}")


def print_deletion(document: Document, name: str, client: "ExchangeClient", *, as_json: bool) -> None:
    """Print the result of a deletion: also, unless as JSON, what was deleted with it and what is left.

    For a name that did not exist, print the nearest one that does.
    """
    if as_json:
        print_json(dict(document))
        return
    print_line(f"{name}  {'deleted' if document.get('deleted') else f'did not exist{name_hint(client, name)}'}")
    lost, left = document.get("lost"), document.get("dead_letters")
    if unbound := len(document.get("unbound") or ()) + document.get("unlisted", 0):
        say(f"{unbound} binding{'s' if unbound > 1 else ''} deleted with it")
    if lost:
        say(f"about {lost} message{'s' if lost > 1 else ''} deleted with it")
    if left:
        say(f"its dead-letter queue {left['sqs_name']!r} is kept with about {left['waiting']} messages")
