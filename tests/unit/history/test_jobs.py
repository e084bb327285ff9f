"""What jobs are told on the local stage is what their definitions in Glue tell them."""

import pytest

from signalbox.history.jobs import REPLAY_PREFIX, REPORTS, job_arguments

OUTPUTS = {
    "HistoryBucket": "bucket",
    "HistoryDatabase": "trial_history",
    "LiveTable": "live",
    "ExchangeTable": "exchanges",
    "ExchangePrefix": "",
}


def told(script: str) -> dict[str, str]:
    return job_arguments(script, OUTPUTS, region="eu-central-1", stage="trial")


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_has_a_folder_of_its_own(name):
    report = REPORTS[name]

    assert told(report.script)["report_path"] == f"s3://bucket/{report.folder}"
    assert report.key("picture", "2026-11-20") == f"{report.folder}/picture/day=2026-11-20.svg"


def test_raw_events_are_compacted_without_what_takes_long():
    assert told("compact_history") == {
        "database": "trial_history",
        "region": "eu-central-1",
        "history_path": "s3://bucket/raw",
        "maintain": "no",
    }


def test_logs_come_from_the_tables_of_the_stage():
    assert {name: told("export_logs")[name] for name in ("log_path", "live_table", "exchange_table")} == {
        "log_path": "s3://bucket/logs",
        "live_table": "live",
        "exchange_table": "exchanges",
    }


def test_a_replay_knows_its_stage_and_where_its_record_is():
    found = told("replay")

    assert (found["stage"], found["exchange_prefix"], found["prefix"]) == ("trial", "-", REPLAY_PREFIX)


def test_a_query_may_ask_raw_events_too():
    assert told("query") == {
        "database": "trial_history",
        "region": "eu-central-1",
        "history_path": "s3://bucket/raw",
    }


def test_a_script_that_has_no_job_is_told_of_the_tables_alone():
    assert told("weather") == {"database": "trial_history", "region": "eu-central-1"}
