"""The rules of the delivery report; every expected number is counted by hand."""

from collections.abc import Callable
from datetime import date

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from glue_jobs.transforms.deliveries import delivery_facts, delivery_hourly, delivery_summary
from glue_jobs.transforms.sections import TOP
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 21)
HOURLY = (
    "day date, hour timestamp, capability string, source string, destination string, reason string, delivered bigint,"
    " again bigint, retried bigint, dead bigint, bytes bigint, p50_ms bigint, p95_ms bigint, p99_ms bigint,"
    " max_ms bigint"
)


@pytest.fixture
def facts(history: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def of(*rows: dict[str, object]) -> DataFrame:
        return history(*rows).transform(delivery_facts, DAY, last=DAY)

    return of


@pytest.fixture
def event(at):
    def made(kind: str = "routed", outcome: str = "delivered", **columns: object) -> dict[str, object]:
        own = {"occurred_at": at("2026-11-21 10:59:00"), "capability": "exchange", "source": "xpublic"}
        of_copy = {"destination": "q_a", "size_bytes": 100, "latency_ms": 50, "attempt": 1}
        return own | of_copy | {"kind": kind, "outcome": outcome} | columns

    return made


def test_copies_are_counted_by_outcome_and_delivered_ones_are_timed(spark: SparkSession, facts, event, at):
    rows = [
        *(event(latency_ms=latency) for latency in (100, 200, 200, 300)),
        event(latency_ms=None, size_bytes=None, attempt=None),
        event(latency_ms=90_000, attempt=3),
        event(outcome="retried", latency_ms=10),
        event("dead_letter", "dead", reason="too large", latency_ms=10),
        event("dead_letter", "dead", reason="too large", latency_ms=20),
        event("dead_letter", "dead", latency_ms=None),
    ]

    actual = delivery_hourly(facts(*rows)).orderBy("reason")

    # Dead letters without a reason and delivered copies are one row. Of five latencies p95 is 3.8 steps from the first:
    # 300 + 0.8 * 89,700; p99 is 3.96 steps.
    ten = at("2026-11-21 10:00:00")
    way = (DAY, ten, "exchange", "xpublic", "q_a")
    expected = [
        (*way, None, 6, 1, 1, 1, 500, 200, 72_060, 86_412, 90_000),
        (*way, "too large", 0, 0, 0, 2, 0, None, None, None, None),
    ]
    assert_df_equality(actual, frame(spark, expected, HOURLY), ignore_nullable=True)


def test_every_capability_counts_and_other_events_and_days_do_not(spark: SparkSession, facts, event, at):
    rows = [
        event(capability="splitting", source="memes", destination="t1", outcome="session"),
        event(capability="splitting", source="memes", destination="t1", outcome="copied", latency_ms=60),
        event("answer", capability="rendezvous", source="sqs", destination=None, size_bytes=None, attempt=2),
        event("delivered", "posted", capability="live", source="r", destination=None, latency_ms=70),
        event("delivered", "failed", capability="live", source="r", destination=None),
        event("delivered", "dropped", capability="live", source="r", destination=None),
        event("offer", "parked", capability="rendezvous", source="sqs"),
        event("unrouted", "dropped"),
        event("declared", "queue"),
        event(occurred_at=at("2026-11-22 00:00:00")),
        event(occurred_at=None),
    ]

    actual = delivery_hourly(facts(*rows)).orderBy("capability")

    ten = at("2026-11-21 10:00:00")
    expected = [
        (DAY, ten, "live", "r", None, None, 1, 0, 1, 0, 100, 70, 70, 70, 70),
        (DAY, ten, "rendezvous", "sqs", None, None, 1, 1, 0, 0, 0, 50, 50, 50, 50),
        (DAY, ten, "splitting", "memes", "t1", None, 2, 0, 0, 0, 200, 55, 60, 60, 60),
    ]
    assert_df_equality(actual, frame(spark, expected, HOURLY), ignore_nullable=True)


def test_a_summary_has_percentiles_of_the_day_busiest_paths_and_most_frequent_reasons(facts, event, at):
    rows = [event(destination=f"q_{number:02}") for number in range(12)]
    rows += [event(destination="q_03", latency_ms=1050, occurred_at=at("2026-11-21 23:00:00"))]
    rows += [event("dead_letter", "dead", reason=reason) for reason in ("rare", "common", "common")]

    summary = delivery_summary(facts(*rows)).orderBy("section", "rank").collect()

    of = {section: [row for row in summary if row.section == section] for section in {row.section for row in summary}}
    ((capability, delivered, dead, p99, maximum),) = (
        (row.capability, row.delivered, row.dead, row.p99_ms, row.max_ms) for row in of["capability"]
    )
    assert (capability, delivered, dead, maximum) == ("exchange", 13, 3, 1050)
    assert p99 == 930  # 0.88 of the last step
    assert [(row.hour.hour, row.delivered, row.p50_ms) for row in of["hour"]] == [(10, 12, 50), (23, 1, 1050)]
    assert [(row.destination, row.delivered, row.dead) for row in of["way"]][:3] == [
        ("q_a", 0, 3),
        ("q_03", 2, 0),
        ("q_00", 1, 0),
    ]
    assert (len(of["way"]), of["way"][0].of) == (TOP, 13)
    assert [(row.reason, row.dead) for row in of["reason"]] == [("common", 2), ("rare", 1)]
