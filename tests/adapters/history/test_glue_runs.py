"""Runs of Glue jobs, started and polled."""

import boto3
import pytest
from botocore.stub import Stubber

from signalbox.aws.history.glue_runs import GlueRuns, JobRunFailed, RunId
from signalbox.errors import EffectRefused

RUN = RunId("jr_1")


@pytest.fixture
def glue():
    return boto3.client("glue", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")


def runs(glue, slept: list[float] | None = None) -> GlueRuns:
    return GlueRuns(glue, "trial", (slept if slept is not None else []).append)


def looks(stub: Stubber, *states: str, **more: str) -> None:
    for state in states:
        answer = {"JobRun": {"JobRunState": state, **more}}
        stub.add_response("get_job_run", answer, {"JobName": "trial-topic-report", "RunId": RUN})


def test_a_job_is_started_by_its_name_with_arguments_that_override_its_defaults(glue):
    with Stubber(glue) as stub:
        wanted = {"JobName": "trial-topic-report", "Arguments": {"--day": "2026-11-20"}}
        stub.add_response("start_job_run", {"JobRunId": RUN}, wanted)

        assert runs(glue).start("topic_report", {"day": "2026-11-20"}) == RUN


def test_a_run_is_polled_until_it_ends(glue):
    slept: list[float] = []
    with Stubber(glue) as stub:
        looks(stub, "STARTING", "RUNNING", "SUCCEEDED")

        assert list(runs(glue, slept).follow("topic_report", RUN)) == ["STARTING", "RUNNING", "SUCCEEDED"]

    assert slept == [5.0, 5.0]


@pytest.mark.parametrize(("fields", "shown"), [({"ErrorMessage": "no bucket"}, "no bucket"), ({}, "CloudWatch")])
def test_a_failed_run_raises_with_glues_reason(glue, fields, shown):
    with Stubber(glue) as stub:
        looks(stub, "FAILED", **fields)

        with pytest.raises(JobRunFailed, match=f"'trial-topic-report'.*FAILED.*{shown}"):
            list(runs(glue).follow("topic_report", RUN))


def test_a_refused_start_raises_with_the_jobs_name(glue):
    with Stubber(glue) as stub:
        stub.add_client_error("start_job_run", "ConcurrentRunsExceededException", "one runs", 400)

        with pytest.raises(EffectRefused, match=r"ConcurrentRunsExceededException.*'trial-replay'"):
            runs(glue).start("replay", {})
