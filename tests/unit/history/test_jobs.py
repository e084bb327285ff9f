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


BASE = {"database": "trial_history", "region": "eu-central-1"}
RAW = {**BASE, "history_path": "s3://bucket/raw"}
COMPACTED = {**RAW, "index_path": "s3://bucket/index", "maintain": "no"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("compact_history", COMPACTED),
        ("day", {**COMPACTED, "report_path": "s3://bucket/reports"}),
        ("query", RAW),
        ("weather", BASE),  # no job
    ],
)
def test_a_job_has_its_paths_and_skips_the_maintenance(script, expected):
    assert arguments_of(script) == expected


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
