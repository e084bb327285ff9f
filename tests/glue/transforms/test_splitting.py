"""The rules of the splitting report; every expected number is counted by hand."""

from collections.abc import Callable
from datetime import date

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from glue_jobs.transforms.splitting import TOTALS, splitting_facts, splitting_report
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

DAY, NEXT_DAY = date(2026, 11, 21), date(2026, 11, 22)
REPORT = "day date, metric string, queue string, session string, label string, value bigint"


@pytest.fixture
def report(spark: SparkSession, history: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def of(*rows: dict[str, object], days: tuple[date, ...] = (DAY,)) -> DataFrame:
        facts = history(*rows).transform(splitting_facts, days[0], last=days[-1])
        return splitting_report(facts, frame(spark, [(day,) for day in days], "day date"))

    return of


@pytest.fixture
def assert_lines(spark: SparkSession) -> Callable[..., None]:
    """Compare a report without its zeros."""

    def check(report: DataFrame, *lines: tuple[object, ...]) -> None:
        expected = frame(spark, [(DAY, *line) for line in lines], REPORT)
        actual = report.where(F.col("value") != 0).orderBy("metric", "queue", "session", "label")
        assert_df_equality(actual, expected, ignore_nullable=True)

    return check


@pytest.fixture
def event(at):
    def made(number: object, kind: str, outcome: str, session: str | None = None, **columns: object):
        own = {"event_id": f"{kind} {number}", "occurred_at": at("2026-11-21 10:00:00"), "capability": "splitting"}
        of_message = {} if kind == "session" else {"source": "memes"}
        labels = {"target": "lambda/app"} | ({"session": session} if session else {})
        return own | of_message | {"kind": kind, "outcome": outcome, "labels": labels} | columns

    return made


def test_a_day_without_events_has_only_zeros_of_the_totals(spark, report):
    actual = report().orderBy("metric", "label")

    expected = [(DAY, metric, None, None, label, 0) for metric, label in sorted(TOTALS)]
    assert len(expected) == 10
    assert_df_equality(actual, frame(spark, expected, REPORT), ignore_nullable=True)


def test_messages_count_by_queue_and_by_receiver(report, assert_lines, event):
    rows = [
        event(1, "routed", "session", "ann"),
        event(2, "routed", "session", "ann"),
        event(3, "routed", "session", "ann", source="orders.fifo"),
        event(4, "routed", "deployed"),
        event(5, "routed", "copied", "eve"),
    ]

    assert_lines(
        report(*rows),
        ("routed", "memes", None, "deployed", 1),
        ("routed", "memes", "ann", "session", 2),
        ("routed", "memes", "eve", "copied", 1),
        ("routed", "orders.fifo", "ann", "session", 1),
        ("routed-total", None, None, "copied", 1),
        ("routed-total", None, None, "deployed", 1),
        ("routed-total", None, None, "session", 3),
    )


def test_returned_messages_count_by_session_and_dead_letters_by_reason(report, assert_lines, event):
    rows = [
        event(1, "returned", "deployed", "ann"),
        event(2, "returned", "session", "ann"),
        event(3, "returned", "original"),
        event(4, "dead_letter", "dead", reason="too large"),
        event(5, "dead_letter", "dead", reason="too large"),
        event(6, "dead_letter", "dead"),
    ]

    assert_lines(
        report(*rows),
        ("dead_letter", "memes", None, None, 1),
        ("dead_letter", "memes", None, "too large", 2),
        ("dead_letter-total", None, None, "dead", 3),
        ("returned", "memes", None, "original", 1),
        ("returned", "memes", "ann", "deployed", 1),
        ("returned", "memes", "ann", "session", 1),
        ("returned-total", None, None, "deployed", 1),
        ("returned-total", None, None, "original", 1),
        ("returned-total", None, None, "session", 1),
    )


def test_sessions_count_by_outcome_and_have_a_time_to_ready(report, assert_lines, event):
    rows = [
        event(1, "session", "started", "ann", latency_ms=0),
        event(2, "session", "ready", "ann", latency_ms=4000),
        event(3, "session", "ended", "ann", latency_ms=60_000),
    ]

    assert_lines(
        report(*rows),
        ("session-total", None, None, "ended", 1),
        ("session-total", None, None, "ready", 1),
        ("session-total", None, None, "started", 1),
        ("time-to-ready-ms", None, None, "p50", 4000),
        ("time-to-ready-ms", None, None, "p95", 4000),
        ("time-to-ready-ms", None, None, "p99", 4000),
    )


def test_times_to_route_are_exact_percentiles_by_queue_and_in_total_without_copies_and_missing_latencies(
    report, spark, event
):
    latencies = enumerate([100, 200, 300, None])
    rows = [event(number, "routed", "deployed", latency_ms=latency) for number, latency in latencies]
    rows += [event(8, "routed", "session", "ann", source="ads", latency_ms=1500)]
    rows += [event(9, "routed", "copied", "eve", latency_ms=9999)]
    rows += [event(9, "returned", "deployed", "ann", latency_ms=9999)]

    actual = report(*rows).where("metric = 'time-to-route-ms'").orderBy("queue", "label")

    # Linear interpolation: p95 of three is 0.95 * 2 = 1.9 steps from the first, 200 + 0.9 * 100;
    # of all four 0.95 * 3 = 2.85 steps, 300 + 0.85 * 1200.
    lines = [(None, "p50", 250), (None, "p95", 1320), (None, "p99", 1464)]
    lines += [("ads", "p50", 1500), ("ads", "p95", 1500), ("ads", "p99", 1500)]
    lines += [("memes", "p50", 200), ("memes", "p95", 290), ("memes", "p99", 298)]
    expected = [(DAY, "time-to-route-ms", queue, None, label, ms) for queue, label, ms in lines]
    assert_df_equality(actual, frame(spark, expected, REPORT), ignore_nullable=True)


def test_other_capabilities_and_days_do_not_count(report, assert_lines, event, at):
    rows = [
        event(1, "routed", "deployed"),
        event(2, "dead_letter", "dead", capability="rendezvous"),
        event(3, "routed", "deployed", occurred_at=at("2026-11-20 23:59:59")),
        event(4, "routed", "deployed", occurred_at=at("2026-11-22 00:00:00")),
    ]

    assert_lines(
        report(*rows),
        ("routed", "memes", None, "deployed", 1),
        ("routed-total", None, None, "deployed", 1),
    )


def test_each_day_is_counted_separately(report, spark, event, at):
    rows = [
        event(1, "routed", "deployed"),
        event(2, "routed", "deployed", occurred_at=at("2026-11-22 10:00:00")),
        event(3, "routed", "deployed", occurred_at=at("2026-11-22 11:00:00")),
    ]

    totals = report(*rows, days=(DAY, NEXT_DAY)).where("metric = 'routed-total' and label = 'deployed'").orderBy("day")

    expected = [(day, "routed-total", None, None, "deployed", count) for day, count in ((DAY, 1), (NEXT_DAY, 2))]
    assert_df_equality(totals, frame(spark, expected, REPORT), ignore_nullable=True)
