"""Queries of the history's tables with Athena."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import reason
from signalbox.errors import RejectedError, UnavailableError

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_athena.client import AthenaClient

POLL_SECONDS = 0.5
QUERY_TIMEOUT = timedelta(minutes=5)

Row = Mapping[str, str | None]


class QueryFailed(RejectedError):
    """Raised when a query fails or is cancelled; the text is Athena's."""


class QueryTooSlow(UnavailableError):
    """Raised when a query does not finish in time."""


class QueryImpossible(UnavailableError):
    """Raised when a call of Athena fails; the text contains AWS's error code."""


def reader_session(session: "boto3.Session", role_arn: str) -> "boto3.Session":
    """Return a session of the role that may query and not write. Raises `QueryImpossible` if it cannot be assumed."""
    import boto3  # noqa: PLC0415 - the function `control` queries with its own role

    try:
        assumed = session.client("sts").assume_role(RoleArn=role_arn, RoleSessionName="history-query")["Credentials"]
    except (ClientError, BotoCoreError) as error:
        raise QueryImpossible(reason(error, role_arn)) from error
    return boto3.Session(
        aws_access_key_id=assumed["AccessKeyId"],
        aws_secret_access_key=assumed["SecretAccessKey"],
        aws_session_token=assumed["SessionToken"],
        region_name=session.region_name,
    )


@dataclass(frozen=True, slots=True)
class Athena:
    """Queries of one database; Athena also stores each result as a file below the S3 URI `results`.

    The stage's workgroup has the database's name: the account's `primary` may force its own place of results.
    """

    athena: "AthenaClient"
    database: str
    results: str
    timeout: timedelta = QUERY_TIMEOUT
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def rows(self, query: str) -> list[Row]:
        """Return the rows of a query, each as a mapping from column name to text.

        Raises `QueryFailed`, `QueryTooSlow` and `QueryImpossible`.
        """
        names, values = self.table(query)
        return [dict(zip(names, row, strict=True)) for row in values]

    def table(self, query: str) -> tuple[list[str], list[list[str | None]]]:
        """Return the column names of a query, which may contain duplicates, and its rows.

        Raises like `rows`.
        """
        try:
            return self._table(query)
        except (ClientError, BotoCoreError) as error:
            raise QueryImpossible(reason(error, self.database)) from error

    def _table(self, query: str) -> tuple[list[str], list[list[str | None]]]:
        started = self.athena.start_query_execution(
            QueryString=query,
            WorkGroup=self.database,
            QueryExecutionContext={"Database": self.database},
            ResultConfiguration={"OutputLocation": self.results},
        )
        query_id = started["QueryExecutionId"]
        self._wait(query_id)
        names, *values = self._values(query_id)
        return list(map(str, names)), values

    def _wait(self, query_id: str) -> None:
        deadline = self.clock() + self.timeout.total_seconds()
        while True:
            status = self.athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"]["Status"]
            if status["State"] == "SUCCEEDED":
                return
            if status["State"] in ("FAILED", "CANCELLED"):
                raise QueryFailed(f"Athena: {status['State']}: {status.get('StateChangeReason', 'no reason given')}")
            if self.clock() >= deadline:
                raise QueryTooSlow(f"Athena has not finished query {query_id!r} within {self.timeout}")
            self.sleep(POLL_SECONDS)

    def _values(self, query_id: str) -> Iterator[list[str | None]]:
        found = self.athena.get_query_results(QueryExecutionId=query_id)
        while True:
            for row in found["ResultSet"]["Rows"]:
                # A null has no `VarCharValue`.
                yield [value.get("VarCharValue") for value in row["Data"]]
            if "NextToken" not in found:
                return
            found = self.athena.get_query_results(QueryExecutionId=query_id, NextToken=found["NextToken"])


def quoted(text: str) -> str:
    """Return a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
