"""The Glue job as it runs: command line in, files out."""

import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from glue_jobs.daily import Arguments
from glue_jobs.rendezvous_report import main

pytestmark = pytest.mark.spark

DAY = "2026-11-21"
# Counted by hand from `raw`: 2 parties, 4 polls, 11 clients; every `-count` in eights.
BLOCK = """\
snowflake-stats-end 2026-11-22 00:00:00 (86400 s)
snowflake-ips DE=1,FR=1
snowflake-ips-standalone 2
snowflake-ips-webext 1
snowflake-ips-badge 0
snowflake-ips-iptproxy 0
snowflake-ips-bloco 0
snowflake-ips-total 2
snowflake-idle-count 8
snowflake-proxy-poll-with-relay-url-count 8
snowflake-proxy-poll-without-relay-url-count 8
snowflake-proxy-rejected-for-relay-url-count 8
client-denied-count 8
client-restricted-denied-count 8
client-unrestricted-denied-count 0
client-snowflake-match-count 16
client-snowflake-timeout-count 8
client-http-count 8
client-http-ips RU=8
client-ampcache-count 0
client-ampcache-ips 
client-sqs-count 16
client-sqs-ips IR=16,??=8
snowflake-ips-nat-restricted 1
snowflake-ips-nat-unrestricted 2
snowflake-ips-nat-unknown 0
"""  # noqa: W291 - upstream leaves a space after the name of an empty list


@pytest.fixture
def raw(tmp_path: Path, history: Callable[..., DataFrame], at) -> Path:
    """Put a day of history where Firehose would: one file an hour of arrival, a late one, copies across midnight."""
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
        # Late by a day, and one of the next day in the same file.
        "dt=2026-11-22/hour=23": [
            {"event_id": "t1", "occurred_at": at(f"{DAY} 23:59:59"), "kind": "timeout"}
            | {"outcome": "expired", "source": "sqs", "reason": "silent proxy"},
            {"event_id": "t2", "occurred_at": at("2026-11-22 00:00:00"), "kind": "timeout"}
            | {"outcome": "expired", "source": "sqs", "reason": "silent proxy"},
        ],
        # Written first on the day before, and again by a retry after midnight: it belongs to the day before.
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


def arguments(history_path: Path, report_path: Path, *more: str) -> list[str]:
    return ["rendezvous_report", "--history_path", f"{history_path}/", "--report_path", f"{report_path}", *more]


def table(spark: SparkSession, report_path: Path) -> DataFrame:
    return spark.read.parquet(str(report_path / "table")).orderBy("day", "metric", "label")


def test_the_report_of_a_day_is_what_upstream_would_have_logged(raw, tmp_path):
    main(arguments(raw, tmp_path / "report", "--day", DAY))

    assert (tmp_path / "report" / "text" / f"day={DAY}.txt").read_text() == BLOCK


def test_the_table_holds_what_the_text_does_not_show(spark, raw, tmp_path):
    main(arguments(raw, tmp_path / "report", "--day", DAY))

    actual = table(spark, tmp_path / "report").where("metric = 'client-sqs-ips' or metric like 'time-to-answer%'")
    lines = [
        ("client-sqs-ips", "??", 1, 8),
        ("client-sqs-ips", "IR", 9, 16),
        ("time-to-answer-ms-p50", "restricted", 500, 500),
        ("time-to-answer-ms-p95", "restricted", 860, 860),
        ("time-to-answer-ms-p99", "restricted", 892, 892),
    ]
    expected = spark.createDataFrame([(*line, date(2026, 11, 21)) for line in lines], TABLE)
    assert_df_equality(actual, expected, ignore_nullable=True)


TABLE = "metric string, label string, exact bigint, shown bigint, day date"


def test_a_second_run_replaces_the_report_with_the_same(spark, raw, tmp_path):
    once, twice = tmp_path / "once", tmp_path / "twice"

    main(arguments(raw, once, "--day", "2026-11-22", "--days", "2"))
    for _ in range(2):
        main(arguments(raw, twice, "--day", "2026-11-22", "--days", "2"))

    assert_df_equality(table(spark, twice), table(spark, once))
    texts = {path.name: path.read_text() for path in (twice / "text").glob("*.txt")}
    assert texts == {path.name: path.read_text() for path in (once / "text").glob("*.txt")}
    assert sorted(texts) == ["day=2026-11-21.txt", "day=2026-11-22.txt"]


def test_a_rerun_of_one_day_leaves_the_other_days_alone_and_takes_late_events_in(spark, raw, history, tmp_path, at):
    report = tmp_path / "report"
    main(arguments(raw, report, "--day", "2026-11-22", "--days", "2"))
    late = {"event_id": "t3", "occurred_at": at(f"{DAY} 12:00:00"), "kind": "timeout", "reason": "silent proxy"}
    history(late).write.parquet(str(raw / "dt=2026-11-22" / "hour=01"))

    main(arguments(raw, report, "--day", DAY))

    timeouts = table(spark, report).where("metric = 'client-snowflake-timeout-count'").select("day", "exact")
    assert [tuple(row) for row in timeouts.collect()] == [(date(2026, 11, 21), 2), (date(2026, 11, 22), 1)]


def test_days_without_any_history_have_a_report_of_zeros(spark, tmp_path):
    main(arguments(tmp_path / "nothing", tmp_path / "report", "--day", DAY))

    assert table(spark, tmp_path / "report").where("exact = 0").count() == 21
    lines = (tmp_path / "report" / "text" / f"day={DAY}.txt").read_text().splitlines()
    assert lines[1] == "snowflake-ips "


@pytest.mark.parametrize(
    ("words", "days"),
    [
        (["--day", "2026-11-21"], ["2026-11-21"]),
        (["--day=2026-03-01", "--days=2"], ["2026-02-28", "2026-03-01"]),
        (["--day", "2026-11-22T01:00:00Z"], ["2026-11-21"]),
        (["--day", "2026-11-22T01:00:00.000+02:00"], ["2026-11-20"]),
        (["--day", "2026-11-22T00:00:00"], ["2026-11-21"]),
        (["--enable-metrics", "true", "--day", "2026-11-21", "--JOB_NAME", "report"], ["2026-11-21"]),
    ],
    ids=["date", "range", "scheduled-time", "other-zone", "no-zone", "glue-s-own-arguments"],
)
@pytest.mark.parametrize("on_glue", [True, False], ids=["glue", "elsewhere"])
def test_the_days_come_from_the_command_line(monkeypatch, words, days, on_glue):
    # None makes the import fail, also where the package is installed.
    monkeypatch.setitem(sys.modules, "awsglue", ModuleType("awsglue") if on_glue else None)
    monkeypatch.setitem(sys.modules, "awsglue.utils", glue_utilities() if on_glue else None)

    parsed = Arguments.parse(arguments(Path("/raw"), Path("/report"), *words))

    assert parsed == Arguments("/raw", "/report", tuple(map(date.fromisoformat, days)))


def glue_utilities() -> ModuleType:
    """Stand in for Glue's package: it reads exactly the names that it is asked for, and insists on each."""

    def resolved_options(argv: Sequence[str], names: Sequence[str]) -> dict[str, str]:
        words = [part for word in argv[1:] for part in (word.split("=", 1) if word.startswith("--") else [word])]
        values = dict(zip(words[::2], words[1::2], strict=True))
        return {"JOB_RUN_ID": "jr_1"} | {name: values[f"--{name}"] for name in names}

    module = ModuleType("awsglue.utils")
    module.getResolvedOptions = resolved_options
    return module


@pytest.mark.parametrize("words", [["--day", "yesterday"], ["--day", DAY, "--days", "0"]], ids=["no-day", "no-days"])
def test_a_command_line_that_names_no_day_is_refused(words):
    with pytest.raises(ValueError, match=r"yesterday|at least 1"):
        Arguments.parse(arguments(Path("/raw"), Path("/report"), *words))
