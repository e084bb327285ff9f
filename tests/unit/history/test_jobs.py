"""The default arguments of jobs on the local stage, which equal those of their Glue definitions."""

import pytest

from signalbox.history.jobs import REPLAY_PREFIX, REPORTS, job_arguments

OUTPUTS = {
    "HistoryBucket": "bucket",
    "HistoryDatabase": "trial_history",
    "HistoryStream": "stream",
    "LiveTable": "live",
    "ExchangeTable": "exchanges",
    "ExchangePrefix": "",
}


def arguments_of(script: str) -> dict[str, str]:
    return job_arguments(script, OUTPUTS, region="eu-central-1", stage="trial")


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_has_a_folder_of_its_own(name):
    report = REPORTS[name]

    assert arguments_of(report.script)["report_path"] == f"s3://bucket/{report.folder}"
    assert report.key("picture", "2026-11-20") == f"{report.folder}/picture/day=2026-11-20.svg"


def test_compaction_skips_the_maintenance():
    assert arguments_of("compact_history") == {
        "database": "trial_history",
        "region": "eu-central-1",
        "history_path": "s3://bucket/raw",
        "index_path": "s3://bucket/index",
        "maintain": "no",
    }


def test_the_day_has_the_folder_of_all_reports_and_skips_the_maintenance():
    assert arguments_of("day") == {
        "database": "trial_history",
        "region": "eu-central-1",
        "history_path": "s3://bucket/raw",
        "index_path": "s3://bucket/index",
        "report_path": "s3://bucket/reports",
        "maintain": "no",
    }


def test_the_log_export_has_the_tables_of_the_stage():
    assert {name: arguments_of("export_logs")[name] for name in ("log_path", "live_table", "exchange_table")} == {
        "log_path": "s3://bucket/logs",
        "live_table": "live",
        "exchange_table": "exchanges",
    }


def test_a_replay_has_its_stage_and_the_prefix_of_its_record():
    found = arguments_of("replay")

    assert (found["stage"], found["exchange_prefix"], found["prefix"]) == ("trial", "-", REPLAY_PREFIX)
    assert found["stream"] == "stream"


def test_a_query_has_the_path_of_raw_events():
    assert arguments_of("query") == {
        "database": "trial_history",
        "region": "eu-central-1",
        "history_path": "s3://bucket/raw",
    }


def test_a_script_without_a_job_has_only_the_database_and_the_region():
    assert arguments_of("weather") == {"database": "trial_history", "region": "eu-central-1"}
