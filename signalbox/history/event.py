"""The history event: what happened to a message, without its body and without an address."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import MappingProxyType

VERSION = 1


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One row of the lake; `docs/history.md` describes each field.

    `event_id` is the same whenever the same fact is written again, so that jobs can drop the copies.
    `occurred_at` carries a zone; `size_bytes` and `latency_ms` carry their unit in their name.
    """

    event_id: str
    occurred_at: datetime
    capability: str
    kind: str
    outcome: str
    reason: str | None = None
    message_id: str | None = None
    topic: str | None = None
    sequence: int | None = None
    source: str | None = None
    destination: str | None = None
    size_bytes: int | None = None
    latency_ms: int | None = None
    attempt: int | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def to_json(self) -> str:
        """Return the event as one JSON document, as Firehose and the Glue table `events_raw` expect it."""
        row: dict[str, object] = {"version": VERSION}
        row |= {f.name: getattr(self, f.name) for f in fields(self)}
        row["occurred_at"] = _timestamp_text(self.occurred_at)
        row["labels"] = dict(self.labels)
        return json.dumps({name: value for name, value in row.items() if value is not None}, separators=(",", ":"))


def _timestamp_text(moment: datetime) -> str:
    # The form that the OpenX SerDe reads as a Hive timestamp: no zone, so UTC by agreement.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
