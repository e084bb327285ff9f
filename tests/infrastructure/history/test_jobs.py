"""The Glue jobs: size, schedules, arguments and packages."""

import json

import pytest

from stacks.history.jobs import DAILY
from stacks.shared import packaging
from tests.infrastructure.history.permissions import REPORTS
from tests.infrastructure.templates import Templates, templates


def properties(stage: Templates, job: str) -> dict:
    return stage.every("AWS::Glue::Job")[f"{job}/Job"]["Properties"]


def schedule(stage: Templates, schedule: str) -> tuple[str, dict[str, str]]:
    """Return a schedule's expression and the arguments of the job."""
    found = stage.every("AWS::Scheduler::Schedule")[f"Schedules/{schedule}"]["Properties"]
    return found["ScheduleExpression"], json.loads(stage.text(found["Target"]["Input"]))["Arguments"]


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_runs_on_spare_capacity_with_its_day_as_argument(stage, name):
    job, (folder, _) = properties(stage, name), REPORTS[name]

    assert stage.text(job["DefaultArguments"]["--report_path"]) == f"s3://History/reports/{folder}"
    assert job["ExecutionClass"] == "FLEX"
    assert schedule(stage, name) == ("cron(10 1 * * ? *)", {"--day": "<aws.scheduler.scheduled-time>", "--days": "2"})


def test_reports_have_the_names_of_their_scripts(stage):
    names = {properties(stage, name)["Name"] for name, _, _ in DAILY.values()}

    assert names == {f"signalbox-{script.replace('_', '-')}" for _, script, _ in DAILY.values()}


def test_every_job_is_of_glue_5_1_without_concurrent_runs_bounded_and_retried_once(stage):
    for name, found in stage.every("AWS::Glue::Job").items():
        job = found["Properties"]
        assert (job["GlueVersion"], job["WorkerType"], job["MaxRetries"]) == ("5.1", "G.1X", 1), name
        assert job["ExecutionProperty"] == {"MaxConcurrentRuns": 1}, name
        assert 2 <= job["NumberOfWorkers"] <= 10, name
        assert job["DefaultArguments"]["--enable-auto-scaling"] == "true", name
        assert 30 <= job["Timeout"] <= 24 * 60, name
        assert job["DefaultArguments"]["--datalake-formats"] == "iceberg", name
        assert stage.text(job["DefaultArguments"]["--database"]) == "HistoryLake/Database", name


def test_every_job_encrypts_its_output_and_logs_except_in_the_emulator(stage):
    local = templates(local=True)

    assert {
        stage.text(job["Properties"]["SecurityConfiguration"]) for job in stage.every("AWS::Glue::Job").values()
    } == {"HistoryJobs/Security"}
    assert not [job for job in local.every("AWS::Glue::Job").values() if "SecurityConfiguration" in job["Properties"]]


def test_hourly_compaction_overlaps_by_an_hour_and_daily_compaction_with_maintenance_precedes_the_reports(stage):
    moment = "<aws.scheduler.scheduled-time>"

    assert schedule(stage, "CompactHours") == ("cron(35 */6 * * ? *)", {"--to": moment, "--hours": "7"})
    assert schedule(stage, "CompactDay") == (
        "cron(2 1 * * ? *)",
        {"--day": moment, "--retention_days": "365", "--maintain": "yes"},
    )
    assert properties(stage, "CompactHistory")["DefaultArguments"]["--maintain"] == "no"


def test_logs_are_exported_at_the_interval_of_the_setting_before_the_table_expires_events(stage):
    assert schedule(stage, "ExportLogs") == ("cron(20 */6 * * ? *)", {})


def test_a_replay_has_no_schedule(stage):
    inputs = [
        stage.text(one["Properties"]["Target"]["Input"]) for one in stage.every("AWS::Scheduler::Schedule").values()
    ]

    assert not [text for text in inputs if "signalbox-replay" in text]
    assert properties(stage, "Replay")["Timeout"] == 24 * 60


def test_the_core_without_the_cli_is_packaged_with_the_jobs_that_need_it():
    alone, with_core = (packaging.glue_modules(with_core=wanted).path for wanted in (False, True))
    names = {path.relative_to(with_core).as_posix() for path in with_core.rglob("*.py")}

    assert not (alone / "signalbox").exists()
    assert {
        "glue_jobs/shared/lake.py",
        "signalbox/exchange/messages/properties.py",
        "signalbox/aws/history/dead_letter_source.py",
    } <= names
    assert not [name for name in names if name.startswith("signalbox/cli")]
