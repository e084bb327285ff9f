"""The rules of the order audit; every expected row is counted by hand."""

import re
from collections.abc import Callable
from datetime import date

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from glue_jobs.transforms.order import (
    COLUMNS,
    NUMBERS_OF_A_DAY,
    facts_by_queue,
    last_positions,
    order_audit,
    order_facts,
)
from signalbox.exchange.routing import sequences
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

DAY, NEXT_DAY = date(2026, 11, 21), date(2026, 11, 22)
FINDINGS = "queue string, finding string, first_sequence bigint, last_sequence bigint, number bigint"
CAUSES = "dead bigint, waiting bigint, elsewhere bigint, nowhere bigint"


@pytest.fixture
def audit(spark: SparkSession, history: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def of(*rows: dict[str, object], days: tuple[date, ...] = (DAY,), before: DataFrame | None = None) -> DataFrame:
        facts = history(*rows).transform(order_facts, days[0], last=days[-1])
        known = last_positions(before) if before else facts.limit(0)
        return order_audit(facts_by_queue(facts, known), frame(spark, [(day,) for day in days], "day date"))

    return of


@pytest.fixture
def event(at):
    def made(
        sequence: int | None, queue: str | None = "q_a", outcome: str = "delivered", **columns: object
    ) -> dict[str, object]:
        kind = {"dead": "dead_letter", "dropped": "unrouted", "live": "logged"}.get(outcome, "routed")
        own = {
            "event_id": f"{outcome}:{sequence}:{queue}",
            "occurred_at": at(f"2026-11-21 10:00:{(sequence or 0) % 60:02}"),
        }
        of_copy = {"capability": "exchange", "source": "x.fifo", "topic": "wx", "message_id": f"m{sequence}"}
        return own | of_copy | {"kind": kind, "outcome": outcome, "sequence": sequence, "destination": queue} | columns

    return made


@pytest.fixture
def assert_findings(spark: SparkSession) -> Callable[..., None]:
    def check(audit: DataFrame, *lines: tuple[object, ...], columns: str = FINDINGS) -> None:
        names = [column.split()[0] for column in columns.split(", ")]
        found = audit.where(~F.col("finding").isin("seen", "audited")).select(*names).orderBy(*names)
        assert_df_equality(found, frame(spark, list(lines), columns), ignore_nullable=True)

    return check


def test_an_audit_without_findings_has_its_scope(audit, event):
    rows = audit(*(event(number, queue) for number in (1, 2, 3) for queue in ("q_a", "q_b"))).orderBy("queue").collect()

    assert [(row.queue, row.finding, row.first_sequence, row.last_sequence, row.number) for row in rows] == [
        (None, "audited", None, None, 6),
        ("q_a", "seen", 1, 3, 3),
        ("q_b", "seen", 1, 3, 3),
    ]


def test_a_day_without_numbered_messages_has_an_audited_row(audit, event):
    rows = audit(event(None), event(1, occurred_at=None), days=(DAY, NEXT_DAY)).orderBy("day").collect()

    assert [(row.day, row.finding, row.number) for row in rows] == [(DAY, "audited", 0), (NEXT_DAY, "audited", 0)]
    assert tuple(rows[0].asDict()) == COLUMNS


def test_numbers_that_begin_anew_after_a_pause_have_a_gap_among_themselves_only(audit, assert_findings, event, at):
    anew = NUMBERS_OF_A_DAY * 20_784

    found = audit(*(event(one, occurred_at=at("2026-11-21 10:00")) for one in (1, 2, anew + 1, anew + 2, anew + 4)))

    assert_findings(found, ("q_a", "gap", anew + 3, anew + 3, 1))


def test_the_pauses_of_numbers_are_those_of_the_exchange():
    assert NUMBERS_OF_A_DAY == sequences.NUMBERS_OF_A_DAY


def test_a_gap_counts_the_other_outcomes_of_its_numbers(audit, assert_findings, event):
    """Of 2 to 8: 2 is a dead letter, 3 waits, 4 went to another queue, 5 to connections, and 6 to 8 have no event."""
    rows = [event(1), event(9), event(2, outcome="dead"), event(3, outcome="retried"), event(4, "q_b")]
    rows += [event(5, None, "live"), event(9, "q_b")]

    found = audit(*rows)

    causes = f"queue string, finding string, number bigint, {CAUSES}"
    a, b = ("q_a", "gap", 7, 1, 1, 2, 3), ("q_b", "gap", 4, 0, 0, 1, 3)
    assert_findings(found, a, b, columns=causes)
    (row,) = found.where("finding = 'gap' and queue = 'q_a'").collect()
    assert (row.first_sequence, row.last_sequence) == (2, 8)
    assert (row.before_event_id, row.after_event_id) == ("delivered:1:q_a", "delivered:9:q_a")
    assert row.before_at < row.after_at


def test_a_delivered_retry_is_no_gap_and_a_dead_letter_after_a_retry_counts_as_dead(audit, assert_findings, event):
    rows = [event(1), event(2, outcome="retried"), event(2), event(3), event(4, outcome="retried")]
    rows += [event(4, outcome="dead"), event(5)]

    assert_findings(
        audit(*rows),
        ("q_a", "gap", 4, 1, 0, 0, 0),
        columns=f"queue string, finding string, first_sequence bigint, {CAUSES}",
    )


def test_a_queue_bound_later_has_no_gap_before_its_first_number(audit, assert_findings, event):
    assert_findings(audit(event(1), event(2), event(3), event(3, "q_late")))


def test_a_number_with_two_messages_and_a_message_with_two_numbers_are_duplicates(audit, assert_findings, event):
    rows = [event(1), event(2), event(2, event_id="other", message_id="n"), event(3), event(4, message_id="m3")]

    found = audit(*rows)

    assert_findings(found, ("q_a", "duplicate", 2, 2, 1), ("q_a", "duplicate", 4, 4, 1))
    of_number, of_message = found.where("finding = 'duplicate'").orderBy("first_sequence").collect()
    assert {of_number.before_event_id, of_number.after_event_id} == {"delivered:2:q_a", "other"}
    assert (of_message.before_event_id, of_message.after_event_id) == ("delivered:3:q_a", "delivered:4:q_a")


def test_one_number_in_two_queues_of_one_topic_or_in_two_topics_is_no_duplicate(audit, assert_findings, event):
    rows = [event(1), event(1, "q_b"), event(1, topic="other", event_id="o"), event(1, source="y.fifo", event_id="y")]

    assert_findings(audit(*rows))


def test_only_the_late_message_is_reordered_and_equal_times_are_not(audit, assert_findings, event, at):
    rows = [event(1), event(2, occurred_at=at("2026-11-21 10:00:30")), *(event(number) for number in (3, 4, 5))]
    rows += [event(number, "q_b", occurred_at=at("2026-11-21 10:00:00")) for number in (1, 2)]

    found = audit(*rows)

    assert_findings(found, ("q_a", "reordered", 2, 2, 1))
    (row,) = found.where("finding = 'reordered'").collect()
    assert (row.before_event_id, row.after_event_id) == ("delivered:3:q_a", "delivered:2:q_a")


def test_an_audit_continues_from_the_last_audited_day_after_any_pause(audit, assert_findings, event, at):
    before = audit(event(1), event(2), event(1, "q_b"), event(2, "q_b"), days=(date(2026, 11, 20), DAY))
    later = {"occurred_at": at("2026-11-22 10:00:00")}
    rows = [event(3, **later), event(5, "q_b", **later), event(1, "q_c", **later), event(4, "q_c", **later)]

    found = audit(*rows, days=(NEXT_DAY,), before=before)

    columns = f"queue string, finding string, first_sequence bigint, {CAUSES}"
    # The other outcomes of a gap that begins before the window are unknown.
    assert_findings(found, ("q_b", "gap", 3, 0, 0, None, None), ("q_c", "gap", 2, 0, 0, 2, 0), columns=columns)
    assert found.where("finding = 'seen'").count() == 3
    assert found.where("day <> '2026-11-22'").count() == 0


def test_a_number_delivered_on_a_later_day_than_a_higher_one_is_reordered(audit, assert_findings, event, at):
    before = audit(event(1), event(3))

    found = audit(event(2, occurred_at=at("2026-11-22 10:00:00")), days=(NEXT_DAY,), before=before)

    assert_findings(found, ("q_a", "reordered", 2, 2, 1))


def test_findings_belong_to_the_day_of_their_later_event(audit, event, at):
    later = {"occurred_at": at("2026-11-22 10:00:00")}
    rows = [event(1), event(3, **later), event(4, **later), event(4, event_id="other", message_id="n", **later)]

    found = audit(*rows, days=(DAY, NEXT_DAY)).where("finding in ('gap', 'duplicate')").select("day", "finding")

    assert sorted(map(tuple, found.collect())) == [(NEXT_DAY, "duplicate"), (NEXT_DAY, "gap")]


def test_the_queues_of_one_topic_are_not_one_task(history, event):
    """One source may send 6,000 copies a second of one topic to its hundred queues."""
    facts = history(event(1)).transform(order_facts, DAY, last=DAY)

    plan = facts_by_queue(facts, facts.limit(0))._jdf.queryExecution().analyzed().toString()

    assert re.search(r"RepartitionByExpression \[exchange#\d+, topic#\d+, queue#\d+\]", plan)
