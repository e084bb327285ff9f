"""The job `rendezvous_report`, from the command line to its files."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame

from glue_jobs import compact_history
from glue_jobs.rendezvous_report import main
from glue_jobs.shared.lake import Lake
from tests.glue.frames import frame

pytestmark = [pytest.mark.spark, pytest.mark.release]

DAY = "2026-11-21"
# Counted by hand from `raw`: 2 parties, 4 polls, 11 clients; every `-count` rounded up to a multiple of eight.
BLOCK = Path(__file__).with_name("rendezvous_block.txt").read_text()


@pytest.fixture
def raw(tmp_path: Path, history: Callable[..., DataFrame], at) -> Path:
    """A day of raw history in Firehose's layout: a file for each hour, a late one, duplicates across midnight."""
    proxy = {"kind": "proxy_poll", "outcome": "matched"}
    first, second = {"nat": "unrestricted", "proxy_type": "standalone"}, {"nat": "restricted", "proxy_type": "webext"}
    with_pattern = {"relay_pattern": "with"}
    in_iran = {"nat": "restricted", "country": "IR"}
    hours = {
        f"dt={DAY}/hour=10": [
            proxy
            | {"event_id": "p1", "occurred_at": at(f"{DAY} 10:00:00")}
            | {"labels": first | with_pattern | {"party": "a", "country": "DE"}},
            proxy
            | {"event_id": "p2", "occurred_at": at(f"{DAY} 10:00:01"), "outcome": "idle"}
            | {"labels": first | with_pattern | {"party": "b", "country": "FR"}},
            proxy
            | {"event_id": "p2", "occurred_at": at(f"{DAY} 10:00:01"), "outcome": "idle"}
            | {"labels": first | with_pattern | {"party": "b", "country": "FR"}},
            proxy
            | {"event_id": "p3", "occurred_at": at(f"{DAY} 10:00:02")}
            | {"labels": second | with_pattern | {"party": "a", "country": "FR"}},
            proxy
            | {"event_id": "p4", "occurred_at": at(f"{DAY} 10:00:03"), "outcome": "relay_rejected"}
            | {"labels": second | {"relay_pattern": "without", "party": "c", "country": "US"}},
            *(
                {"event_id": f"a{number}", "occurred_at": at(f"{DAY} 10:01:00"), "kind": "answer"}
                | {"outcome": "delivered", "source": "sqs", "latency_ms": 100 * number, "labels": in_iran}
                for number in range(1, 10)
            ),
            {"event_id": "o1", "occurred_at": at(f"{DAY} 10:02:00"), "kind": "offer"}
            | {"outcome": "denied", "source": "http", "labels": {"nat": "unknown", "country": "RU"}},
        ],
        # An event late by a day, and one of the next day in the same file.
        "dt=2026-11-22/hour=23": [
            {"event_id": "t1", "occurred_at": at(f"{DAY} 23:59:59"), "kind": "timeout"}
            | {"outcome": "expired", "source": "sqs", "reason": "silent proxy"},
            {"event_id": "t2", "occurred_at": at("2026-11-22 00:00:00"), "kind": "timeout"}
            | {"outcome": "expired", "source": "sqs", "reason": "silent proxy"},
        ],
        # Written first on the day before, and again by a retry after midnight: counts for the day before.
        "dt=2026-11-20/hour=23": [
            {"event_id": "t0", "occurred_at": at("2026-11-20 23:59:59"), "kind": "timeout"}
            | {"outcome": "expired", "source": "ampcache", "reason": "silent proxy"},
        ],
        f"dt={DAY}/hour=00": [
            {"event_id": "t0", "occurred_at": at(f"{DAY} 00:00:01"), "kind": "timeout"}
            | {"outcome": "expired", "source": "ampcache", "reason": "silent proxy"},
        ],
    }
    for hour, events in hours.items():
        history(*events).coalesce(1).write.parquet(str(tmp_path / "raw" / hour))
    return tmp_path / "raw"


@pytest.fixture
def run(raw: Path, lake: Lake, tmp_path: Path) -> Callable[..., Path]:
    """A function that compacts all raw events, reports days and returns the path of the report."""

    def made(*words: str, into: str = "report") -> Path:
        lake_of = ["--database", lake.database]
        days = ["--day", "2026-11-22", "--days", "3"]
        compact_history.main(["compact_history", "--history_path", f"{raw}", *lake_of, *days, "--maintain", "no"])
        main(["rendezvous_report", *lake_of, "--report_path", f"{tmp_path / into}/", *words])
        return tmp_path / into

    return made


def table(lake: Lake) -> DataFrame:
    return lake.spark.table(lake.name("rendezvous_daily")).orderBy("day", "metric", "label")


def test_the_text_of_a_day_is_upstreams_log_block(run):
    report = run("--day", DAY)

    assert (report / "text" / f"day={DAY}.txt").read_text() == BLOCK


def test_the_table_has_exact_numbers_which_the_text_omits(lake, run):
    report = run("--day", DAY)

    is_chosen = "metric = 'client-sqs-ips' or metric like 'time-to-answer-ms-by-nat%'"
    lines = [
        ("client-sqs-ips", "??", 1, 8),
        ("client-sqs-ips", "IR", 9, 16),
        ("time-to-answer-ms-by-nat-p50", "restricted", 500, 500),
        ("time-to-answer-ms-by-nat-p95", "restricted", 860, 860),
        ("time-to-answer-ms-by-nat-p99", "restricted", 892, 892),
    ]
    expected = frame(lake.spark, [(date(2026, 11, 21), *line) for line in lines], TABLE)
    assert_df_equality(table(lake).where(is_chosen), expected, ignore_nullable=True)
    document = json.loads((report / "json" / f"day={DAY}.json").read_text())
    assert (document["report"], document["day"]) == ("rendezvous_report", DAY)
    exact_row = {"day": DAY, "metric": "client-sqs-ips", "label": "IR", "exact": 9, "shown": 16}
    assert exact_row in document["rows"]


TABLE = "day date, metric string, label string, exact bigint, shown bigint"


def test_a_second_run_writes_the_same_report(lake, run):
    once = run("--day", "2026-11-22", "--days", "2", into="once")
    rows = table(lake).collect()
    for _ in range(2):
        twice = run("--day", "2026-11-22", "--days", "2", into="twice")

    assert table(lake).collect() == rows
    files = {path.relative_to(twice): path.read_bytes() for path in twice.glob("*/day=*")}
    assert files == {path.relative_to(once): path.read_bytes() for path in once.glob("*/day=*")}
    assert sorted(path.name for path in files if path.suffix == ".txt") == ["day=2026-11-21.txt", "day=2026-11-22.txt"]


def test_a_rerun_of_one_day_includes_late_events_and_keeps_the_other_days(lake, raw, history, run, at):
    run("--day", "2026-11-22", "--days", "2")
    late = {"event_id": "t3", "occurred_at": at(f"{DAY} 12:00:00"), "kind": "timeout", "reason": "silent proxy"}
    history(late).write.parquet(str(raw / "dt=2026-11-22" / "hour=01"))

    run("--day", DAY)

    timeouts = table(lake).where("metric = 'client-snowflake-timeout-count'").select("day", "exact")
    assert [tuple(row) for row in timeouts.collect()] == [(date(2026, 11, 21), 2), (date(2026, 11, 22), 1)]


def test_days_without_events_have_a_report_of_zeros(lake, tmp_path):
    main(["rendezvous_report", "--database", lake.database, "--report_path", f"{tmp_path}", "--day", DAY])

    assert table(lake).where("exact = 0").count() == 21
    lines = (tmp_path / "text" / f"day={DAY}.txt").read_text().splitlines()
    assert lines[1] == "snowflake-ips "
