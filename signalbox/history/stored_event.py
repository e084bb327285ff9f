"""Stored history events, parsed from the documents that `HistoryEvent.to_json` writes."""

from datetime import UTC, datetime

from signalbox.documents import Problems, Section
from signalbox.errors import RejectedError
from signalbox.history.event import HistoryEvent


class InvalidEvent(RejectedError):
    """Raised when a stored row is not a history event; the text has all problems."""


def parse_event(document: object) -> HistoryEvent:
    """Parse the document of an event; fields of later versions are ignored. Raises `InvalidEvent`."""
    problems = Problems()
    row = Section.of(document, "event", problems)
    event = HistoryEvent(
        event_id=row.required_text("event_id"),
        occurred_at=_moment(row, "occurred_at"),
        capability=row.required_text("capability"),
        kind=row.required_text("kind"),
        outcome=row.text("outcome") or "",
        reason=row.text("reason"),
        message_id=row.text("message_id"),
        topic=row.text("topic"),
        sequence=_number(row, "sequence"),
        source=row.text("source"),
        destination=row.text("destination"),
        size_bytes=_number(row, "size_bytes"),
        latency_ms=_number(row, "latency_ms"),
        attempt=_number(row, "attempt"),
        labels=row.texts_by_name("labels") or {},
    )
    problems.refuse(InvalidEvent)
    return event


def _moment(row: Section, name: str) -> datetime:
    text = row.required_text(name)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        row.problem(name, f"expected YYYY-MM-DD HH:MM:SS.mmm in UTC, not {text!r}")
        return datetime.min.replace(tzinfo=UTC)


def _number(row: Section, name: str) -> int | None:
    # Unlike a whole number of a request it may be negative: a latency is the difference of two machines' clocks.
    value = row.fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    row.problem(name, f"expected a number, not {value!r}")
    return None
