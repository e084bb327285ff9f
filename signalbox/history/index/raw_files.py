"""Events by id in the rows of a raw file: Firehose's Parquet, one file for about a minute."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from signalbox.history.event import HistoryEvent
from signalbox.history.ids import ids_of
from signalbox.history.stored_event import parse_event

REQUIRED = ("event_id", "occurred_at", "capability", "kind")


def events_of_rows(rows: Iterable[Mapping[str, Any]], ids: Collection[str]) -> Iterator[HistoryEvent]:
    """Yield the events among rows that name one of the ids; times are datetimes in UTC, labels are pairs.

    Raises `InvalidEvent`. A row without an id or a time is no event: compaction completes or skips it.
    """
    for row in rows:
        if all(row.get(name) is not None for name in REQUIRED):
            event = _event(row)
            if not ids_of(event).isdisjoint(ids):
                yield event


def _event(row: Mapping[str, Any]) -> HistoryEvent:
    labels = {name: value for name, value in row.get("labels") or () if value is not None}
    time = row["occurred_at"].replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    return parse_event({**row, "occurred_at": time, "labels": labels})
