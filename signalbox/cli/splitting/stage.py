"""Shared options and clients of the splitting commands."""

import getpass
import secrets
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.shared.stage import StageOptions, output, say
from signalbox.clients.control import ControlClient

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

TargetName = Annotated[
    str, typer.Option("--target", help="Deployed consumer, such as lambda/meme-app.", metavar="KIND/NAME")
]
ConfiguredTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="Deployed consumer, such as lambda/meme-app or deployment/meme-app; by default mirrord.json's `target`.",
        metavar="KIND/NAME",
    ),
]


@contextmanager
def control(options: StageOptions, *, says_where: bool = False) -> Iterator[ControlClient]:
    """Yield a client of a stage's control queue; with `says_where`, name the stage when the context ends."""
    with control_of(options.deployment(), says_where=says_where) as client:
        yield client


@contextmanager
def control_of(deployment: "Deployment", *, says_where: bool = False) -> Iterator[ControlClient]:
    """Yield a client of a deployment's control queue; with `says_where`, name the stage when the context ends.

    After an error it is not named, because the command changed nothing.
    """
    yield ControlClient(
        deployment.session().client("sqs"),
        control_queue_url=output(deployment, "SplitControlQueueUrl"),
        reply_queue_url=output(deployment, "SplitReplyQueueUrl"),
    )
    if says_where:
        say(f"in {deployment.place}")


def new_session_name() -> str:
    """Return a unique session name with the user's name."""
    return f"{_plain(getpass.getuser(), '-_.')}-{secrets.token_hex(3)}"


def default_owner() -> str:
    """Return the user and host of this machine."""
    return _plain(f"{getpass.getuser()}@{socket.gethostname()}", "-_.@")


def _plain(name: str, others: str) -> str:
    # Windows domain accounts contain a backslash, and names end up in tags, which allow fewer characters.
    return "".join(c if (c.isascii() and c.isalnum()) or c in others else "-" for c in name)[:48]


def warn_not_split(names: Iterable[str]) -> None:
    """Print a warning for the queues of a session or a registry that are not on SQS."""
    if found := ", ".join(names):
        say(f"not on SQS, so not split: {found}")
