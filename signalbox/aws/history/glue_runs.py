"""Runs of Glue jobs, started and followed until they end."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType

from signalbox.aws.shared.errors import translate_write_errors
from signalbox.errors import UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_glue.client import GlueClient

RunId = NewType("RunId", str)

POLL_SECONDS = 5.0
ACTIVE_STATES = frozenset({"STARTING", "RUNNING", "STOPPING", "WAITING"})
SUCCEEDED = "SUCCEEDED"


class JobRunFailed(UnavailableError):
    """Raised when a run of a Glue job ends without success; the text is Glue's."""


@dataclass(frozen=True, slots=True)
class GlueRuns:
    """The runs of one stage's Glue jobs."""

    glue: "GlueClient"
    stage: str
    sleep: Callable[[float], None] = time.sleep

    def start(self, script: str, arguments: Mapping[str, str]) -> RunId:
        """Start a script's job with arguments that override its defaults, and return the run's id.

        `arguments` have no dashes.

        Raises `EffectRefused` and `EffectFailed`.
        """
        options = {f"--{name}": value for name, value in arguments.items()}
        with translate_write_errors(self._description(script)):
            return RunId(self.glue.start_job_run(JobName=self.job_name(script), Arguments=options)["JobRunId"])

    def follow(self, script: str, run_id: RunId) -> Iterator[str]:
        """Yield the state of a run at each poll until it has succeeded.

        Raises `JobRunFailed`, `EffectRefused` and `EffectFailed`.
        """
        while True:
            with translate_write_errors(self._description(script)):
                run = self.glue.get_job_run(JobName=self.job_name(script), RunId=run_id)["JobRun"]
            state = run["JobRunState"]
            yield state
            if state == SUCCEEDED:
                return
            if state not in ACTIVE_STATES:
                reason = run.get("ErrorMessage") or "Glue gives no reason; its log is in CloudWatch"
                raise JobRunFailed(f"{self._description(script)}, run {run_id}: {state}: {reason}")
            self.sleep(POLL_SECONDS)

    def job_name(self, script: str) -> str:
        """Return the name of a script's job."""
        return f"{self.stage}-{script.replace('_', '-')}"

    def _description(self, script: str) -> str:
        return f"job {self.job_name(script)!r}"
