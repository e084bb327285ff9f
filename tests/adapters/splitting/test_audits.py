"""What the history lake tells of a message, asked through Athena in this process."""

from datetime import date

import boto3
import pytest

from signalbox.aws.history.athena import Athena
from signalbox.aws.splitting.audits import AthenaAudits
from tests.fakes.audits import EVENTS, answer_with
from tests.fakes.aws import aws  # noqa: F401 - a fixture

SINCE = date(2026, 11, 20)


@pytest.fixture
def audits(aws) -> AthenaAudits:  # noqa: F811
    return AthenaAudits(Athena(boto3.client("athena"), "lake", "s3://bucket/queries/"), "events_raw")


def asked() -> str:
    """Return what the lake was asked."""
    athena = boto3.client("athena")
    (query_id,) = athena.list_query_executions()["QueryExecutionIds"]
    return athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"]["Query"]


def test_a_trail_has_each_fact_once_with_all_that_is_written(audits):
    answer_with(EVENTS)

    first, second = audits.trail("1", since=SINCE)

    assert (first["event_id"], first["labels"]["owner"]) == ("routed:1:mirrord-1", "ann@desk")
    assert (first["attempt"], first["latency_ms"]) == ("1", None)
    assert (second["outcome"], second["labels"]) == ("deployed", {})


def test_a_message_of_which_nothing_is_written_has_no_trail(audits):
    answer_with([])

    assert audits.trail("1", since=SINCE) == []


def test_only_the_days_in_question_are_read(audits):
    answer_with([])

    audits.trail("1", since=SINCE)

    assert "FROM events_raw WHERE dt >= '2026-11-20' AND" in asked()


def test_a_message_id_cannot_become_sql(audits):
    answer_with([])

    audits.trail("' OR 1=1 --", since=SINCE)

    assert "message_id = ''' OR 1=1 --' ORDER" in asked()
