"""What all commands of the exchange share: who asks, of which stage, and how things are document."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.shared.output import print_fields, print_json, print_line
from signalbox.cli.shared.stage import output, say
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.clients.exchange.client import ExchangeClient

User = Annotated[
    str | None,
    typer.Option(
        "--user",
        help="Act as this user: here with the key that `user add` left behind, in AWS with your standard credentials.",
        metavar="NAME",
    ),
]
Document = Mapping[str, Any]  # as the stage tells it; docs/exchange.md has the fields

NEVER = "never"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}


@contextmanager
def exchanges(*, aws: bool, stage: str, user: str | None) -> "Iterator[ExchangeClient]":
    """Give a client of a stage's exchanges."""
    from signalbox.cli.shared.deployment import find_deployment

    if aws and user is not None:
        client = _user_in_aws(user, stage=stage)
    else:
        client = client_of(find_deployment(aws=aws, stage=stage), user=user)
    with client:
        yield client


def client_of(deployment: "Deployment", *, user: str | None = None) -> "ExchangeClient":
    """Return the client of a deployment's administrator, or of one of its users, whose key is here."""
    from signalbox.cli.shared.user_keys import user_key
    from signalbox.clients.exchange.client import ExchangeClient
    from signalbox.exchange.model.names import StageNames
    from signalbox.sarracenia.rights.names import parse_user_name

    control_queue_url = output(deployment, "ExchangeControlQueueUrl")
    url_prefix, _, control_queue = control_queue_url.rpartition("/")
    names = StageNames(stage_name(control_queue), deployment.outputs.get("ExchangePrefix", ""))
    if user is None:
        return ExchangeClient(deployment.session().client("sqs"), names, f"{url_prefix}/")
    name = parse_user_name(user)
    session = deployment.session_of(user_key(deployment, name))
    return ExchangeClient(session.client("sqs"), names, f"{url_prefix}/", name)


def stage_name(control_queue: str) -> str:
    """Return the stage whose administrators' control queue this is, by name or by URL."""
    from signalbox.exchange.model.names import CONTROL_MARK

    return control_queue.rpartition("/")[2].removesuffix(CONTROL_MARK)


def _user_in_aws(user: str, *, stage: str) -> "ExchangeClient":
    from signalbox.cli.shared.deployment import aws_session
    from signalbox.clients.exchange.client import user_client

    # A user may not look at the stack, so nothing is asked of it.
    return user_client(aws_session().client("sqs"), user, stage=stage)


def seconds(text: str | None, option: str) -> int | None:
    """Return how long a person said, such as `90`, `5m` or `never`, which is 0; None says nothing."""
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
    """Return a number of seconds of a document as people write it; None is for ever."""
    if not isinstance(value, int):
        return NEVER
    unit, size = max(((unit, size) for unit, size in UNITS.items() if value % size == 0), key=lambda one: one[1])
    return f"{value // size}{unit}"


def print_resource(document: Document, *, as_json: bool) -> None:
    """Print what the stage document of one thing."""
    if as_json:
        print_json(dict(document))
    else:
        print_fields({name.replace("_", " "): _text(value) for name, value in document.items()})


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def note_sqs_name(document: Document, name: str) -> None:
    """Tell the name that a queue has in SQS, where it is another one."""
    if document.get("sqs_name", name) != name:
        say(f"SQS does not take the name {name!r}: the queue is {document['sqs_name']!r} there")


def print_deletion(document: Document, name: str, *, as_json: bool) -> None:
    """Print what came of a deletion; for people, also what it took along, and what it left behind."""
    if as_json:
        print_json(dict(document))
        return
    print_line(f"{name}  {'deleted' if document.get('deleted') else 'was not there'}")
    unbound, lost, left = document.get("unbound") or (), document.get("lost"), document.get("dead_letters")
    if unbound:
        say(f"{len(unbound)} binding{'s' if len(unbound) > 1 else ''} went with it")
    if lost:
        say(f"about {lost} message{'s' if lost > 1 else ''} went with it")
    if left:
        say(f"its dead-letter queue {left['sqs_name']!r} stays, since it holds about {left['waiting']}")
