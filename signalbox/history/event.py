"""The history event: one fact about a message, without its body and without an address."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import MappingProxyType

VERSION = 1
LONGEST_LINE = 100_000  # bytes; Firehose refuses a call with a record of more than 1,000 KiB
CUT = 500  # characters of each text of an event that would be longer


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """A row of the history; `docs/history.md` describes each field.

    `event_id` is deterministic: a retry writes the same fact with the same id, and jobs remove the duplicate.
    `occurred_at` has a time zone. `size_bytes` and `latency_ms` have their unit in their name.
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
        """Return the event as one line of JSON, in the form of the Glue table `events_raw`; null fields are omitted."""
        row: dict[str, object] = {"version": VERSION}
        row |= {f.name: getattr(self, f.name) for f in fields(self)}
        row["occurred_at"] = _timestamp_text(self.occurred_at)
        row["labels"] = dict(self.labels)
        line = _line(row)
        return line if len(line) <= LONGEST_LINE else _line({name: _cut(name, value) for name, value in row.items()})


def _line(row: Mapping[str, object]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, separators=(",", ":"))


def _cut(name: str, value: object) -> object:
    if isinstance(value, dict):
        return {label: _cut(label, text) for label, text in value.items()}
    return value[:CUT] if isinstance(value, str) and name != "event_id" else value


def _timestamp_text(moment: datetime) -> str:
    # The OpenX SerDe parses this form as a Hive timestamp. It has no zone; all times are UTC.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
