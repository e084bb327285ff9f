"""The audit trail of a message, queried through Athena in this process."""

from datetime import date

import boto3
import pytest

from signalbox.aws.history.athena import Athena
from signalbox.aws.splitting.audit_trail import AthenaAuditTrail
from tests.fakes.athena import EVENTS, stub_events
from tests.fakes.aws import aws  # noqa: F401 - a fixture

SINCE = date(2026, 11, 20)


@pytest.fixture
def audit_trail(aws) -> AthenaAuditTrail:  # noqa: F811
    return AthenaAuditTrail(Athena(boto3.client("athena"), "lake", "s3://bucket/queries/"), "events_raw")


def asked() -> str:
    """Return the queries."""
    athena = boto3.client("athena")
    (query_id,) = athena.list_query_executions()["QueryExecutionIds"]
    return athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"]["Query"]


def test_a_trail_has_each_event_once_with_all_fields(audit_trail):
    stub_events(EVENTS, database="lake")

    first, second = audit_trail.events("1", since=SINCE)

    assert (first["event_id"], first["labels"]["owner"]) == ("routed:1:mirrord-1", "ann@desk")
    assert (first["attempt"], first["latency_ms"]) == ("1", None)
    assert (second["outcome"], second["labels"]) == ("deployed", {})


def test_an_unknown_message_has_an_empty_trail(audit_trail):
    stub_events([], database="lake")

    assert audit_trail.events("1", since=SINCE) == []


def test_only_the_requested_days_are_read(audit_trail):
    stub_events([], database="lake")

    audit_trail.events("1", since=SINCE)

    assert "FROM events_raw WHERE dt >= '2026-11-20' AND" in asked()


def test_a_message_id_cannot_become_sql(audit_trail):
    stub_events([], database="lake")

    audit_trail.events("' OR 1=1 --", since=SINCE)

    assert "message_id = ''' OR 1=1 --' ORDER" in asked()
