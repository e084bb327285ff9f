"""What all commands of splitting share: their options, the stage that they talk to, and files."""

import getpass
import secrets
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.shared.stage import output, say

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.clients.control import ControlClient

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
    from signalbox.cli.shared.deployment import find_deployment

    with control_of(find_deployment(aws=aws, stage=stage)) as client:
        yield client


@contextmanager
def control_of(deployment: "Deployment") -> "Iterator[ControlClient]":
    """Give a client of a deployment's control queue."""
    from signalbox.clients.splitting.control import split_client

    client = split_client(
        deployment.session().client("sqs"),
        control_queue_url=output(deployment, "SplitControlQueueUrl"),
        reply_queue_prefix=output(deployment, "SplitReplyQueuePrefix"),
    )
    with client:
        yield client


def new_session_name() -> str:
    """Return a name that nobody else's session has."""
    return f"{_plain(getpass.getuser(), '-_.')}-{secrets.token_hex(3)}"


def default_owner() -> str:
    """Return who works at this machine."""
    return _plain(f"{getpass.getuser()}@{socket.gethostname()}", "-_.@")


def _plain(name: str, others: str) -> str:
    # Accounts of Windows domains have a backslash, and both end in tags, which take less than file systems do.
    return "".join(c if (c.isascii() and c.isalnum()) or c in others else "-" for c in name)[:48]


def say_what_is_not_split(names: Iterable[str]) -> None:
    """Tell which queues of a session are not on SQS."""
    if found := ", ".join(names):
        say(f"not on SQS, so not split: {found}")
