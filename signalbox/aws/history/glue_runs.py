"""Runs of Glue jobs: started, and followed to their end."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType

from signalbox.aws.shared.errors import effect
from signalbox.errors import UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_glue.client import GlueClient

RunId = NewType("RunId", str)

SECONDS_BETWEEN_LOOKS = 5.0
GOING_ON = frozenset({"STARTING", "RUNNING", "STOPPING", "WAITING"})
SUCCEEDED = "SUCCEEDED"


class JobRunFailed(UnavailableError):
    """Raised when a run of a Glue job ends without success; the text is Glue's."""


@dataclass(frozen=True, slots=True)
class GlueRuns:
    """Starts and follows runs of the jobs of one stage."""

    glue: "GlueClient"
    stage: str
    sleep: Callable[[float], None] = time.sleep

    def start(self, script: str, arguments: Mapping[str, str]) -> RunId:
        """Start the job of a script with arguments, without their dashes, over its own; return the run's id.

        Raises `EffectRefused` and `EffectFailed`.
        """
        told = {f"--{name}": value for name, value in arguments.items()}
        with effect(self._of(script)):
            return RunId(self.glue.start_job_run(JobName=self.job(script), Arguments=told)["JobRunId"])

    def follow(self, script: str, run_id: RunId) -> Iterator[str]:
        """Yield the state of a run at each look, until it has succeeded.

        Raises `JobRunFailed`, `EffectRefused` and `EffectFailed`.
        """
        while True:
            with effect(self._of(script)):
                run = self.glue.get_job_run(JobName=self.job(script), RunId=run_id)["JobRun"]
            state = run["JobRunState"]
            yield state
            if state == SUCCEEDED:
                return
            if state not in GOING_ON:
                reason = run.get("ErrorMessage") or "Glue gives no reason; its log is in CloudWatch"
                raise JobRunFailed(f"{self._of(script)}, run {run_id}: {state}: {reason}")
            self.sleep(SECONDS_BETWEEN_LOOKS)

    def job(self, script: str) -> str:
        """Return the name of the job of a script."""
        return f"{self.stage}-{script.replace('_', '-')}"

    def _of(self, script: str) -> str:
        return f"job {self.job(script)!r}"
