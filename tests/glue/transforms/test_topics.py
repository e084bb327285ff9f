"""The rules of the topic report; every expected number is counted by hand."""

from collections.abc import Callable
from datetime import date

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from glue_jobs.transforms.sections import TOP
from glue_jobs.transforms.topics import topic_facts, topic_hourly, topic_summary
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 21)
HOURLY = (
    "day date, hour timestamp, exchange string, topic string, publisher string, publications bigint, copies bigint,"
    " retried bigint, dead bigint, dropped bigint, alternate bigint, logged bigint, bytes_in bigint, bytes_out bigint"
)


@pytest.fixture
def hourly(history: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def of(*rows: dict[str, object]) -> DataFrame:
        return history(*rows).transform(topic_facts, DAY, last=DAY).transform(topic_hourly)

    return of


@pytest.fixture
def event(at):
    def made(message: str, kind: str = "routed", outcome: str = "delivered", **columns: object) -> dict[str, object]:
        own = {"occurred_at": at("2026-11-21 10:59:00"), "capability": "exchange", "source": "xpublic"}
        of_message = {"message_id": message, "topic": "wx.ca", "size_bytes": 100, "labels": {"publisher": "alice"}}
        return own | of_message | {"kind": kind, "outcome": outcome} | columns

    return made


def test_a_publication_counts_once_and_its_copies_each(spark: SparkSession, hourly, event, at):
    rows = [
        event("m1", destination="q_a"),
        event("m1", destination="q_b", size_bytes=104),
        event("m2", outcome="retried", destination="q_a"),
        event("m2", destination="q_b"),
        event("m3", "unrouted", "dropped"),
        event("m4", "unrouted", "alternate"),
        event("m4", destination="q_c"),
        event("m5", "dead_letter", "dead", destination="q_a"),
        event("m5", "logged", "live"),
        event("m6", "logged", "live"),
    ]

    expected = [(DAY, at("2026-11-21 10:00:00"), "xpublic", "wx.ca", "alice", 6, 4, 1, 1, 1, 1, 2, 600, 404)]
    assert_df_equality(hourly(*rows), frame(spark, expected, HOURLY), ignore_nullable=True)


def test_hours_exchanges_topics_and_publishers_count_separately_and_other_days_and_missing_topics_do_not_count(
    spark: SparkSession, hourly, event, at
):
    rows = [
        event("m1"),
        event("m2", occurred_at=at("2026-11-21 11:00:00")),
        event("m3", source="xs_bob", labels={}, size_bytes=None),
        event("m4", topic="wx.us"),
        event("m5", occurred_at=at("2026-11-22 00:00:00")),
        event("m6", occurred_at=None),
        event("m7", "dead_letter", "dead", topic=None),
        event("m8", "declared", "binding"),
    ]

    ten, eleven = at("2026-11-21 10:00:00"), at("2026-11-21 11:00:00")
    expected = [
        (DAY, ten, "xpublic", "wx.ca", "alice", 1, 1, 0, 0, 0, 0, 0, 100, 100),
        (DAY, ten, "xpublic", "wx.us", "alice", 1, 1, 0, 0, 0, 0, 0, 100, 100),
        (DAY, ten, "xs_bob", "wx.ca", None, 1, 1, 0, 0, 0, 0, 0, 0, 0),
        (DAY, eleven, "xpublic", "wx.ca", "alice", 1, 1, 0, 0, 0, 0, 0, 100, 100),
    ]
    actual = hourly(*rows).orderBy("hour", "exchange", "topic")
    assert_df_equality(actual, frame(spark, expected, HOURLY), ignore_nullable=True)


def test_a_summary_has_the_total_all_hours_all_exchanges_and_the_top_topics_and_publishers(hourly, event, at):
    rows = [event(f"m{number}", topic=f"wx.{number % 12:02}") for number in range(25)]
    rows += [event("late", "unrouted", "dropped", topic="wx.late", occurred_at=at("2026-11-21 23:00:00"))]

    summary = topic_summary(hourly(*rows)).orderBy("section", "rank").collect()

    of = {section: [row for row in summary if row.section == section] for section in {row.section for row in summary}}
    assert [(row.publications, row.dropped, row.of) for row in of["total"]] == [(26, 1, 1)]
    assert [(row.hour.hour, row.publications) for row in of["hour"]] == [(10, 25), (23, 1)]
    assert [(row.exchange, row.publications) for row in of["exchange"]] == [("xpublic", 26)]
    assert [(row.publisher, row.publications) for row in of["publisher"]] == [("alice", 26)]
    assert [(row.topic, row.dropped) for row in of["unrouted"]] == [("wx.late", 1)]
    # 13 topics, of which one has three publications, eleven have two, and the late one has one.
    assert [(row.topic, row.publications) for row in of["topic"]][:2] == [("wx.00", 3), ("wx.01", 2)]
    assert (len(of["topic"]), of["topic"][0].of) == (TOP, 13)


def test_a_summary_without_events_is_empty(hourly):
    assert topic_summary(hourly()).collect() == []
