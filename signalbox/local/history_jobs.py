"""Runs the jobs over history on this machine, as the local stage's schedules would have Glue do it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from signalbox.errors import RejectedError
from signalbox.exchange.model.names import CONTROL_MARK
from signalbox.history.jobs import job_arguments
from signalbox.local import spark
from signalbox.local.emulator import Credentials

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

Job = tuple[str, Mapping[str, str]]


def run_here(deployment: "Deployment", jobs: Sequence[Job], on_line: Callable[[str], None]) -> None:
    """Run scripts one after another in one Spark, with their own arguments over those of their jobs."""
    spark.run_jobs(
        [(script, _defaults(deployment, script) | dict(arguments)) for script, arguments in jobs],
        endpoint_url=str(deployment.endpoint_url),
        credentials=Credentials(**deployment.administrator),
        region=deployment.region,
        on_line=on_line,
    )


def stage_of(outputs: Mapping[str, str]) -> str:
    """Return the name of the stage that has these outputs."""
    return outputs["ExchangeControlQueueUrl"].rpartition("/")[2].removesuffix(CONTROL_MARK)


def _defaults(deployment: "Deployment", script: str) -> dict[str, str]:
    outputs = deployment.outputs
    try:
        return job_arguments(script, outputs, region=deployment.region, stage=stage_of(outputs))
    except KeyError as error:
        raise RejectedError(f"the stage has no output {error}: bring it up to date by deploying it again") from error
