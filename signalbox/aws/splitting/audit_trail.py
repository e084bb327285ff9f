"""The audit trail of single messages, read from the history lake with Athena."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from signalbox.aws.history.athena import Athena, Row, quoted


@dataclass(frozen=True, slots=True)
class AthenaAuditTrail:
    """`AuditTrail` over the lake's table of raw events."""

    athena: Athena
    table: str

    def events(self, message_id: str, *, since: date) -> list[dict[str, object]]:
        """Return the events of a message since a day, oldest first, without duplicates.

        Raises `QueryFailed`, `QueryTooSlow` and `QueryImpossible`.
        """
        return _each_fact_once(self.athena.rows(_query(message_id, table=self.table, since=since)))


def _query(message_id: str, *, table: str, since: date) -> str:
    # As JSON, because a missing label is an error in Athena's SQL and none in the emulator's.
    fields = "event_id, cast(occurred_at AS varchar) AS occurred_at, kind, outcome, reason, source, destination"
    asked = f"dt >= {quoted(since.isoformat())} AND capability = 'splitting' AND message_id = {quoted(message_id)}"
    return (
        f"SELECT {fields}, attempt, latency_ms, cast(labels AS json) AS labels "  # noqa: S608 - all texts are quoted
        f"FROM {table} WHERE {asked} ORDER BY occurred_at, event_id"
    )


def _each_fact_once(rows: Iterable[Row]) -> list[dict[str, object]]:
    """Return the rows without the duplicates of retries, which have the same `event_id`."""
    facts: dict[str | None, Row] = {}
    for row in rows:
        facts.setdefault(row["event_id"], row)
    return [{**row, "labels": json.loads(row["labels"] or "{}")} for row in facts.values()]
