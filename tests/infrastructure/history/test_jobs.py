"""The Glue jobs: size, schedules, arguments and packages."""

import json

import pytest

from signalbox.cli.destroy.plan import job_log_prefix
from stacks.history.jobs import DAILY
from stacks.shared import packaging
from tests.infrastructure.history.jobs import REPORTS
from tests.infrastructure.other_settings import ASSET_KEY
from tests.infrastructure.templates import Templates, templates


def properties(stage: Templates, job: str) -> dict:
    return stage.every("AWS::Glue::Job")[f"{job}/Job"]["Properties"]


def schedule(stage: Templates, schedule: str) -> tuple[str, dict[str, str]]:
    """Return a schedule's expression and the arguments of the job."""
    found = stage.every("AWS::Scheduler::Schedule")[f"Schedules/{schedule}"]["Properties"]
    return found["ScheduleExpression"], json.loads(stage.text(found["Target"]["Input"]))["Arguments"]


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_runs_on_spare_capacity_into_its_folder(stage, name):
    job, (folder, _) = properties(stage, name), REPORTS[name]

    assert stage.text(job["DefaultArguments"]["--report_path"]) == f"s3://History/reports/{folder}"
    assert job["ExecutionClass"] == "FLEX"


def test_the_day_runs_once_on_spare_capacity_with_compaction_all_reports_and_maintenance(stage):
    job = properties(stage, "Day")
    maintained = {"--retention_days": "365", "--maintain": "yes"}

    assert (job["Name"], job["ExecutionClass"]) == ("signalbox-day", "FLEX")
    assert stage.text(job["DefaultArguments"]["--report_path"]) == "s3://History/reports"
    assert stage.text(job["DefaultArguments"]["--history_path"]) == "s3://History/raw"
    assert stage.text(job["DefaultArguments"]["--index_path"]) == "s3://History/index"
    assert schedule(stage, "Day") == (
        "cron(2 1 * * ? *)",
        {"--day": "<aws.scheduler.scheduled-time>", "--days": "2", "--compact_days": "1", **maintained},
    )


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
        assert job["DefaultArguments"]["--database"] == "signalbox_lake", name


def test_jobs_log_into_groups_of_the_stack_that_are_deleted_after_their_roles(stage):
    groups = {
        name: group["Properties"]["LogGroupName"]
        for name, group in stage.every("AWS::Logs::LogGroup").items()
        if name.startswith("HistoryJobs/")
    }
    prefix = "/signalbox/signalbox/jobs"

    assert sorted(groups.values()) == [f"{prefix}/error", f"{prefix}/output"]
    assert prefix + "/" == job_log_prefix("signalbox")
    for name, job in stage.every("AWS::Glue::Job").items():
        role = stage.every("AWS::IAM::Role")[name.replace("/Job", "/Role")]
        assert job["Properties"]["DefaultArguments"]["--custom-logGroup-prefix"] == prefix, name
        assert set(groups) <= {stage.names[key] for key in role["DependsOn"]}, name


def test_jobs_publish_no_metrics_that_nothing_reads_and_have_one_rule_each(stage):
    jobs = stage.every("AWS::Glue::Job")
    for name, found in jobs.items():
        assert not {"--enable-metrics", "--enable-observability-metrics"} & set(
            found["Properties"]["DefaultArguments"]
        ), name

    assert set(stage.every("AWS::Events::Rule")) == {name.replace("/Job", "/Unsuccessful") for name in jobs}


def test_every_job_encrypts_its_output_except_in_the_emulator(stage):
    local = templates(local=True)

    assert {
        stage.text(job["Properties"]["SecurityConfiguration"]) for job in stage.every("AWS::Glue::Job").values()
    } == {"HistoryJobs/Security"}
    assert not [job for job in local.every("AWS::Glue::Job").values() if "SecurityConfiguration" in job["Properties"]]


def test_jobs_do_not_encrypt_logs_themselves_since_glue_would_write_to_groups_without_retention(stage):
    (security,) = stage.every("AWS::Glue::SecurityConfiguration").values()

    assert set(security["Properties"]["EncryptionConfiguration"]) == {"S3Encryptions", "JobBookmarksEncryption"}
    for kind in ("Error", "Output"):
        assert "KmsKeyId" in stage.every("AWS::Logs::LogGroup")[f"HistoryJobs/{kind}Logs"]["Properties"]


def test_the_alarm_of_a_job_counts_every_end_of_a_run_but_success(stage):
    rules = stage.every("AWS::Events::Rule")
    for name, job in stage.every("AWS::Glue::Job").items():
        own = name.removesuffix("/Job")
        alarm = stage.every("AWS::CloudWatch::Alarm")[f"{own}/Failed"]["Properties"]
        ((dimension,),) = [alarm["Dimensions"]]
        pattern = rules[stage.text(dimension["Value"])]["Properties"]["EventPattern"]

        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Events", "TriggeredRules")
        assert (pattern["source"], pattern["detail-type"]) == (["aws.glue"], ["Glue Job State Change"])
        assert [stage.text(job_name) for job_name in pattern["detail"]["jobName"]] == [name]
        assert pattern["detail"]["state"] == [{"anything-but": ["SUCCEEDED"]}]
        assert job["Properties"]["Name"].startswith("signalbox-")


def test_jobs_of_an_interval_run_at_hours_that_cron_knows(stage, otherwise):
    for found, expression in ((stage, "*/6"), (otherwise, "*/12")):
        assert schedule(found, "CompactHours")[0] == f"cron(35 {expression} * * ? *)"
        assert schedule(found, "ExportLogs")[0] == f"cron(20 {expression} * * ? *)"


def test_by_default_only_the_job_of_the_day_compacts_history():
    stage = templates()

    assert schedule(stage, "ExportLogs")[0] == "cron(20 0 * * ? *)"
    assert not [name for name in stage.every("AWS::Scheduler::Schedule") if "CompactHours" in name]


def test_jobs_may_decrypt_their_scripts_with_the_key_of_the_asset_bucket(otherwise):
    allowed = {
        name: (statement["Action"], json.dumps(statement["Condition"]))
        for name, statement in otherwise.statements()
        if statement["Resource"] == ASSET_KEY
    }

    assert set(allowed) == {name.replace("/Job", "/Role/DefaultPolicy") for name in otherwise.every("AWS::Glue::Job")}
    assert {action for action, _ in allowed.values()} == {"kms:Decrypt"}
    assert all('"kms:ViaService"' in condition and "s3." in condition for _, condition in allowed.values())


def test_hourly_compaction_overlaps_by_an_hour_without_maintenance(stage):
    moment = "<aws.scheduler.scheduled-time>"

    assert schedule(stage, "CompactHours") == ("cron(35 */6 * * ? *)", {"--to": moment, "--hours": "7"})
    arguments = properties(stage, "CompactHistory")["DefaultArguments"]
    assert (arguments["--maintain"], stage.text(arguments["--index_path"])) == ("no", "s3://History/index")


def test_logs_are_exported_at_the_interval_of_the_setting_before_the_table_expires_events(stage):
    assert schedule(stage, "ExportLogs") == ("cron(20 */6 * * ? *)", {})


def test_a_replay_and_single_reports_have_no_schedule(stage):
    inputs = [
        stage.text(one["Properties"]["Target"]["Input"]) for one in stage.every("AWS::Scheduler::Schedule").values()
    ]
    names = ["signalbox-replay", *(properties(stage, name)["Name"] for name in REPORTS)]

    assert not [text for text in inputs for name in names if f'"{name}"' in text]
    assert properties(stage, "Replay")["Timeout"] == 24 * 60


def test_the_core_without_the_cli_is_packaged_with_the_jobs_that_need_it():
    with_core = packaging.glue_modules(with_core=True).path
    names = {path.relative_to(with_core).as_posix() for path in with_core.rglob("*.py")}

    assert {
        "glue_jobs/shared/lake.py",
        "signalbox/exchange/messages/properties.py",
        "signalbox/aws/history/dead_letter_source.py",
    } <= names
    assert not [name for name in names if name.startswith("signalbox/cli")]
