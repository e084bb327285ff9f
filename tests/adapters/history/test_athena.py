"""Athena queries of the history's tables."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from signalbox.aws.history.athena import Athena, QueryFailed, QueryImpossible, QueryTooSlow, quoted, reader_session
from tests.fakes.aws import aws

__all__ = ["aws"]


@dataclass
class Client:
    """A fake Athena client that returns statuses in order, and pages of rows."""

    states: list[dict[str, str]]
    pages: list[list[list[str | None]]] = field(default_factory=list)
    started: dict[str, Any] = field(default_factory=dict)

    def start_query_execution(self, **request: Any) -> dict[str, str]:
        self.started = request
        return {"QueryExecutionId": "1"}

    def get_query_execution(self, *, QueryExecutionId: str) -> dict[str, Any]:  # noqa: N803 (boto3's name)
        state = self.states[0] if len(self.states) == 1 else self.states.pop(0)
        return {"QueryExecution": {"Status": state}}

    def get_query_results(self, *, QueryExecutionId: str, NextToken: str = "0") -> dict[str, Any]:  # noqa: N803
        number = int(NextToken)
        rows = [{"Data": [{} if v is None else {"VarCharValue": v} for v in row]} for row in self.pages[number]]
        more = {"NextToken": str(number + 1)} if number + 1 < len(self.pages) else {}
        return {"ResultSet": {"Rows": rows}, **more}


def athena_of(client: Client) -> Athena:
    slept: list[float] = []
    return Athena(client, "lake", "s3://bucket/queries/", sleep=slept.append, clock=lambda: sum(slept))


def test_rows_of_all_pages_are_mappings_by_column_name():
    client = Client(
        [{"State": "QUEUED"}, {"State": "RUNNING"}, {"State": "SUCCEEDED"}],
        [[["kind", "reason"], ["routed", None]], [["returned", "ended"]]],
    )

    rows = athena_of(client).rows("SELECT 1")

    assert rows == [{"kind": "routed", "reason": None}, {"kind": "returned", "reason": "ended"}]
    assert client.started == {
        "QueryString": "SELECT 1",
        "WorkGroup": "lake",
        "QueryExecutionContext": {"Database": "lake"},
        "ResultConfiguration": {"OutputLocation": "s3://bucket/queries/"},
    }


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"State": "FAILED", "StateChangeReason": "no such table"}, "FAILED: no such table"),
        ({"State": "CANCELLED"}, "CANCELLED: no reason"),
    ],
)
def test_a_failed_query_raises_with_athenas_reason(status, text):
    with pytest.raises(QueryFailed, match=text):
        athena_of(Client([status])).rows("SELECT 1")


def test_a_query_times_out():
    athena = replace(athena_of(Client([{"State": "RUNNING"}])), timeout=timedelta(seconds=20))

    with pytest.raises(QueryTooSlow, match="'1' within 0:00:20"):
        athena.rows("SELECT 1")
    assert athena.clock() == 20


THROTTLED = {"Error": {"Code": "TooManyRequestsException", "Message": "Rate exceeded"}}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            ClientError(THROTTLED, "GetQueryExecution"),
            "TooManyRequestsException at GetQueryExecution of lake: Rate exceeded",
        ),
        (EndpointConnectionError(endpoint_url="https://athena"), "EndpointConnectionError at lake"),
    ],
)
def test_a_failed_call_of_athena_raises_with_its_error_code(error, text):
    class Refusing(Client):
        def get_query_execution(self, **_request: Any) -> dict[str, Any]:
            raise error

    with pytest.raises(QueryImpossible, match=text):
        athena_of(Refusing([])).rows("SELECT 1")


READER = "arn:aws:iam::123456789012:role/reader"


@pytest.mark.usefixtures("aws")
def test_queries_are_made_with_the_role_of_readers_in_the_region_of_the_caller():
    session = reader_session(boto3.Session(region_name="eu-west-1"), READER)

    assert session.client("sts").get_caller_identity()["Arn"].endswith("assumed-role/reader/history-query")
    assert session.region_name == "eu-west-1"


def test_a_caller_who_may_not_assume_the_role_of_readers_gets_awss_code():
    def refuse(**_request: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")

    session = SimpleNamespace(client=lambda _name: SimpleNamespace(assume_role=refuse))

    with pytest.raises(QueryImpossible, match="AccessDenied"):
        reader_session(session, READER)


def test_quotes_in_a_literal_are_escaped():
    assert quoted("it's") == "'it''s'"
