"""The job `day`: one application writes what the single jobs write."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from glue_jobs import compact_history, day
from glue_jobs.shared.lake import Lake
from glue_jobs.transforms.tables import EVENTS, REPORTS
from signalbox.history import jobs
from tests.glue.frames import new_lake

FIRST, SECOND = "2026-11-20", "2026-11-21"


@pytest.fixture
def raw(history: Callable[..., DataFrame], at, tmp_path: Path) -> Path:
    """Raw history of two days and every capability, with a duplicate; an event of the first arrives on the second."""
    copy = {"capability": "exchange", "kind": "routed", "outcome": "delivered", "source": "x.fifo", "topic": "t"}
    copy |= {"destination": "q.fifo", "message_id": "m", "size_bytes": 9, "latency_ms": 5}
    split = {"capability": "splitting", "kind": "routed", "outcome": "session", "source": "orders", "latency_ms": 7}
    session = {"capability": "live", "kind": "session", "outcome": "started", "event_id": "session:started:1:1"}
    hours = {
        f"dt={FIRST}/hour=10": [
            copy | {"event_id": "c1", "occurred_at": at(f"{FIRST} 10:00:00"), "sequence": 1},
            copy | {"event_id": "c1", "occurred_at": at(f"{FIRST} 10:00:00"), "sequence": 1},
            copy | {"event_id": "c3", "occurred_at": at(f"{FIRST} 10:00:01"), "sequence": 3, "message_id": "n"},
            split | {"event_id": "s1", "occurred_at": at(f"{FIRST} 10:00:02")},
            session | {"occurred_at": at(f"{FIRST} 10:00:03")},
        ],
        f"dt={SECOND}/hour=01": [
            {"event_id": "late", "occurred_at": at(f"{FIRST} 23:59:59"), "kind": "timeout", "outcome": "expired"},
            {"event_id": "p", "occurred_at": at(f"{SECOND} 01:00:00"), "kind": "proxy_poll", "outcome": "idle"},
        ],
    }
    for folder, rows in hours.items():
        history(*rows).coalesce(1).write.parquet(str(tmp_path / "raw" / folder))
    return tmp_path / "raw"


def run(lake: Lake, raw: Path, reports: Path, *words: str) -> None:
    paths = ["--history_path", f"{raw}", "--report_path", f"{reports}"]
    day.main(["day", "--database", lake.database, *paths, "--maintain", "no", *words])


def contents(lake: Lake) -> dict[str, list[str]]:
    tables = [table.name for table in (EVENTS, *REPORTS)]
    return {name: sorted(map(str, lake.spark.table(lake.name(name)).collect())) for name in tables}


def files(reports: Path) -> dict[str, str]:
    return {f"{path.relative_to(reports)}": path.read_text() for path in reports.glob("*/*/day=*")}


@pytest.mark.spark
@pytest.mark.release
def test_the_day_writes_the_tables_and_files_of_the_single_jobs(lake, raw, tmp_path):
    window = ["--day", SECOND, "--days", "2"]
    single = new_lake(lake.spark, f"{lake.database}_single")
    common = ["--database", single.database, *window]
    compact_history.main(["", "--history_path", f"{raw}", "--maintain", "no", *common])
    for script, (folder, _) in day.REPORTS.items():
        job = import_module(f"glue_jobs.{script}")
        job.main(["", *common, "--report_path", f"{tmp_path}/single/{folder}"])

    run(lake, raw, tmp_path / "day", *window)

    assert contents(lake) == contents(single)
    assert files(tmp_path / "day") == files(tmp_path / "single")
    assert len(files(tmp_path / "day")) == 6 * 2 * 3


@pytest.mark.spark
@pytest.mark.release
def test_a_failed_report_fails_the_job_after_all_others(lake, raw, tmp_path, monkeypatch, capsys):
    failing = {"split_report": ("splitting", lambda run: 1 / 0), "topic_report": day.REPORTS["topic_report"]}
    monkeypatch.setattr(day, "REPORTS", failing)

    with pytest.raises(ExceptionGroup, match="the day is not complete") as raised:
        run(lake, raw, tmp_path / "day", "--day", SECOND, "--days", "2", "--compact_days", "1")

    assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError]
    assert {name.split("/")[0] for name in files(tmp_path / "day")} == {"topics"}
    assert "day: split_report failed: division by zero" in capsys.readouterr().out
    # Only the second day was compacted, with the late event that arrived then.
    assert [row.event_id for row in lake.spark.table(lake.name("events")).orderBy("event_id").collect()] == [
        "late",
        "p",
    ]


@pytest.mark.spark
@pytest.mark.release
def test_reports_are_made_without_compaction(lake, raw, tmp_path, monkeypatch):
    monkeypatch.setattr(day, "REPORTS", {"cost_report": day.REPORTS["cost_report"]})

    run(lake, raw, tmp_path / "day", "--day", FIRST, "--compact", "no")

    assert not lake.exists("events")
    assert len(files(tmp_path / "day")) == 3


def test_the_order_audit_is_the_last_step_so_that_a_timeout_in_it_ends_no_other(monkeypatch):
    monkeypatch.setattr(day, "spark_session", lambda _name: None)
    arguments = ["day", "--database", "d", "--history_path", "h", "--report_path", "r", "--day", FIRST]

    names = [step.name for step in day.steps(arguments)]

    assert names[:2] == ["compact_history", "clean_up"]
    assert sorted(names[2:]) == sorted(day.REPORTS)
    assert names[-1] == "order_audit"


def test_the_day_has_the_reports_and_folders_of_the_commands():
    assert {script: f"{jobs.REPORT_PREFIX}/{folder}" for script, (folder, _) in day.REPORTS.items()} == {
        report.script: report.folder for report in jobs.REPORTS.values()
    }
