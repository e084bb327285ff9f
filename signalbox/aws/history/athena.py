"""Questions to the history lake, through Athena."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import reason
from signalbox.errors import RejectedError, UnavailableError

# Every account has it. Permissions to ask are permissions for a workgroup, so it is named.
WORK_GROUP = "primary"
SECONDS_BETWEEN_LOOKS = 0.5
QUERY_TIMEOUT = timedelta(minutes=5)

Row = Mapping[str, str | None]


class QueryFailed(RejectedError):
    """Raised when Athena does not answer a query; the text is Athena's."""


class QueryTooSlow(UnavailableError):
    """Raised when Athena has not answered a query in time."""


class QueryImpossible(UnavailableError):
    """Raised when Athena cannot be asked, or does not tell how a query is; the text has AWS's code."""


class AthenaClient(Protocol):
    """What is needed of boto3's Athena client."""

    @property
    def start_query_execution(self) -> Callable[..., Any]:
        """Begin a query and return a mapping with its `QueryExecutionId`."""
        ...

    @property
    def get_query_execution(self) -> Callable[..., Any]:
        """Return a mapping with how far a query is."""
        ...

    @property
    def get_query_results(self) -> Callable[..., Any]:
        """Return a page of a query's rows, of which the first page has the names of the columns first."""
        ...


@dataclass(frozen=True, slots=True)
class Athena:
    """Asks one database; Athena leaves each answer as a file under `results`, too."""

    athena: AthenaClient
    database: str
    results: str
    timeout: timedelta = QUERY_TIMEOUT
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def rows(self, query: str) -> list[Row]:
        """Return the rows of a query by the names of their columns.

        Raises `QueryFailed`, `QueryTooSlow` and `QueryImpossible`.
        """
        names, values = self.table(query)
        return [dict(zip(names, row, strict=True)) for row in values]

    def table(self, query: str) -> tuple[list[str], list[list[str | None]]]:
        """Return the names of a query's columns, of which two may be the same, and its rows.

        Raises what `rows` does.
        """
        try:
            return self._table(query)
        except (ClientError, BotoCoreError) as error:
            raise QueryImpossible(reason(error, self.database)) from error

    def _table(self, query: str) -> tuple[list[str], list[list[str | None]]]:
        started = self.athena.start_query_execution(
            QueryString=query,
            WorkGroup=WORK_GROUP,
            QueryExecutionContext={"Database": self.database},
            ResultConfiguration={"OutputLocation": self.results},
        )
        query_id = str(started["QueryExecutionId"])
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
                raise QueryFailed(f"Athena: {status['State']}: {status.get('StateChangeReason', 'no reason is given')}")
            if self.clock() >= deadline:
                raise QueryTooSlow(f"Athena has not answered query {query_id!r} in {self.timeout}")
            self.sleep(SECONDS_BETWEEN_LOOKS)

    def _values(self, query_id: str) -> Iterator[list[str | None]]:
        page: Mapping[str, str] = {}
        while True:
            found = self.athena.get_query_results(QueryExecutionId=query_id, **page)
            for row in found["ResultSet"]["Rows"]:
                # A null is a value without its text.
                yield [value.get("VarCharValue") for value in row["Data"]]
            if "NextToken" not in found:
                return
            page = {"NextToken": found["NextToken"]}


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
