"""The history jobs on this machine, with the arguments that the schedules on AWS give to Glue."""

from collections.abc import Callable, Mapping, Sequence

from signalbox.clients.deployment import Deployment, require_local
from signalbox.errors import RejectedError
from signalbox.exchange.model.names import CONTROL_MARK
from signalbox.history.jobs import job_arguments
from signalbox.local.emulator.lifecycle import Credentials
from signalbox.local.spark.jobs import run_jobs

Job = tuple[str, Mapping[str, str]]


def run_locally(
    deployment: Deployment,
    jobs: Sequence[Job],
    on_line: Callable[[str], None],
    *,
    when: Callable[[], None] | None = None,
) -> None:
    """Run jobs one after another in one Spark session; their arguments override the defaults of each script.

    With `when`, Spark starts at once, and the jobs when `when` returns.
    """
    stage = require_local(deployment)
    run_jobs(
        [(script, _defaults(deployment, script) | dict(arguments)) for script, arguments in jobs],
        endpoint_url=stage.endpoint_url,
        credentials=Credentials(**stage.administrator),
        region=deployment.region,
        on_line=on_line,
        when=when,
    )


def stage_of(outputs: Mapping[str, str]) -> str:
    """Return the name of the stage with these outputs."""
    return outputs["ExchangeControlQueueUrl"].rpartition("/")[2].removesuffix(CONTROL_MARK)


def _defaults(deployment: Deployment, script: str) -> dict[str, str]:
    outputs = deployment.outputs
    try:
        return job_arguments(script, outputs, region=deployment.region, stage=stage_of(outputs))
    except KeyError as error:
        raise RejectedError(f"the stage has no output {error}: deploy it again to update it") from error
