"""What commands that talk to a stage share: their options, and how they tell of progress and of time."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

Aws = Annotated[bool, typer.Option("--aws", help="A stage in AWS, by your standard credentials, not the local one.")]
Stage = Annotated[str, typer.Option(help="Name of the stage in AWS.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def output(deployment: "Deployment", name: str) -> str:
    """Return an output of a stage; one that was deployed before there was its capability has none of these."""
    try:
        return deployment.outputs[name]
    except KeyError as error:
        raise RejectedError(f"the stage has no output {name!r}: bring it up to date by deploying it again") from error


def say(text: str) -> None:
    """Tell of progress."""
    sys.stderr.write(f"· {text}\n")
    sys.stderr.flush()


def age(moment: object) -> str:
    """Return how long ago a moment of a document was, for people."""
    try:
        then = datetime.fromisoformat(str(moment))
    except ValueError:
        return ""
    return duration((datetime.now(UTC) - then).total_seconds())


def duration(seconds: float) -> str:
    """Return a number of seconds for people."""
    whole = int(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{max(whole, 0)} s"
