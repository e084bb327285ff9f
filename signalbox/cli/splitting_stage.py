"""What all commands of splitting share: their options, the stage that they talk to, and files."""

import getpass
import secrets
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.cli.deployment import Deployment
    from signalbox.control.client import ControlClient

Aws = Annotated[bool, typer.Option("--aws", help="A stage in AWS, by your standard credentials, not the local one.")]
Stage = Annotated[str, typer.Option(help="Name of the stage in AWS.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TargetName = Annotated[
    str, typer.Option("--target", help="Deployed consumer, such as lambda/meme-app.", metavar="KIND/NAME")
]
SessionName = Annotated[
    str | None, typer.Option("--session", help="Name of the session; if not given, your name and a random part.")
]
Owner = Annotated[str | None, typer.Option(help="Whose session it is; you at this machine if not given.")]


@contextmanager
def control(*, aws: bool, stage: str) -> "Iterator[ControlClient]":
    """Give a client of a stage's control queue."""
    from signalbox.cli.deployment import find_deployment

    with control_of(find_deployment(aws=aws, stage=stage)) as client:
        yield client


@contextmanager
def control_of(deployment: "Deployment") -> "Iterator[ControlClient]":
    """Give a client of a deployment's control queue."""
    from signalbox.splitting.protocol import split_client

    client = split_client(
        deployment.session().client("sqs"),
        control_queue_url=output(deployment, "SplitControlQueueUrl"),
        reply_queue_prefix=output(deployment, "SplitReplyQueuePrefix"),
    )
    with client:
        yield client


def output(deployment: "Deployment", name: str) -> str:
    """Return an output of a stage; one that was deployed before there was splitting has none of these."""
    try:
        return deployment.outputs[name]
    except KeyError as error:
        raise RejectedError(f"the stage has no output {name!r}: bring it up to date by deploying it again") from error


def new_session_name() -> str:
    """Return a name that nobody else's session has."""
    return f"{_plain(getpass.getuser(), '-_.')}-{secrets.token_hex(3)}"


def default_owner() -> str:
    """Return who works at this machine."""
    return _plain(f"{getpass.getuser()}@{socket.gethostname()}", "-_.@")


def _plain(name: str, others: str) -> str:
    # Accounts of Windows domains have a backslash, and both end in tags, which take less than file systems do.
    return "".join(c if (c.isascii() and c.isalnum()) or c in others else "-" for c in name)[:48]


def say(text: str) -> None:
    """Tell of progress."""
    sys.stderr.write(f"· {text}\n")
    sys.stderr.flush()


def say_what_is_not_split(names: Iterable[str]) -> None:
    """Tell which queues of a session are not on SQS."""
    if found := ", ".join(names):
        say(f"not on SQS, so not split: {found}")


def age(moment: object) -> str:
    """Return how long ago a moment of a document was, for people."""
    try:
        then = datetime.fromisoformat(str(moment))
    except ValueError:
        return ""
    seconds = int((datetime.now(UTC) - then).total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{max(seconds, 0)} s"
