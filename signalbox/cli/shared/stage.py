"""Options and output that all commands of a stage share."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.shared.output import escaped
from signalbox.cli.shared.slow_calls import SLOW_CALLS
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

SETTINGS_OUTPUT = "Settings"  # the settings that a stage was deployed with
VERSION_OUTPUT = "Version"  # the version of Signalbox that deployed it

Aws = Annotated[
    bool, typer.Option("--aws", help="Use a stage in AWS with your standard credentials instead of the local stage.")
]
Stage = Annotated[str, typer.Option(help="Name of the stage in AWS.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class StageOptions:
    """The options that name a stage."""

    aws: Aws = False
    stage: Stage = "signalbox"

    def deployment(self) -> "Deployment":
        """Return the stage. Raises `RejectedError` if there is none."""
        from signalbox.cli.shared.deployment import find_deployment

        return find_deployment(aws=self.aws, stage=self.stage)


@dataclass(frozen=True, slots=True)
class OutputOptions(StageOptions):
    """The options that name a stage, and the one that selects JSON."""

    as_json: Json = False


def output(deployment: "Deployment", name: str) -> str:
    """Return an output of a stage. Raises `RejectedError` when the deployed version does not have it."""
    try:
        return deployment.outputs[name]
    except KeyError as error:
        from signalbox.clients.deployment import missing_output

        raise RejectedError(missing_output(deployment.outputs, name)) from error


def say(text: str) -> None:
    """Print progress to standard error."""
    SLOW_CALLS.end()
    sys.stderr.write(f"· {escaped(text)}\n")
    sys.stderr.flush()


def local_time(moment: object) -> str:
    """Return an ISO 8601 time in this machine's time zone, to the second."""
    try:
        return datetime.fromisoformat(str(moment)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return str(moment)


def age(moment: object) -> str:
    """Return the age of an ISO 8601 time as a short text."""
    try:
        then = datetime.fromisoformat(str(moment))
    except ValueError:
        return ""
    return duration((datetime.now(UTC) - then).total_seconds())


def duration(seconds: float) -> str:
    """Return a number of seconds as a short text."""
    whole = int(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{max(whole, 0)} s"
