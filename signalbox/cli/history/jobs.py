"""Runs of history jobs: with Spark on this machine for the local stage, with Glue for a stage in AWS."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from signalbox.cli.shared.stage import output, say

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

Job = tuple[str, Mapping[str, str]]


def run_jobs(deployment: "Deployment", jobs: Sequence[Job], on_line: Callable[[str], None]) -> None:
    """Run jobs one after another until they end; `on_line` receives the output lines of local runs.

    Raises `RejectedError` for a stage without history.
    """
    from signalbox.clients.deployment import AwsDeployment

    output(deployment, "HistoryBucket")  # named in the error of a stage without history
    if isinstance(deployment, AwsDeployment):
        _run_in_aws(deployment, jobs)
    else:
        say(f"Spark starts on this machine: {', '.join(script for script, _ in jobs)}")  # its result takes seconds

        from signalbox.local.spark.history_jobs import run_locally

        run_locally(deployment, jobs, on_line)


def _run_in_aws(deployment: "Deployment", jobs: Sequence[Job]) -> None:
    from signalbox.aws.history.glue_runs import GlueRuns
    from signalbox.local.spark.history_jobs import stage_of

    runs = GlueRuns(deployment.session().client("glue"), stage_of(deployment.outputs))
    for script, arguments in jobs:
        run_id, before = runs.start(script, arguments), ""
        for state in runs.follow(script, run_id):
            if state != before:
                say(f"{runs.job_name(script)}: {state.lower()}")
            before = state
