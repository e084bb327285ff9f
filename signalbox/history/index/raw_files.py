"""Events of a raw file by id: Firehose's Parquet, one file for about a minute."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from signalbox.history.event import HistoryEvent
from signalbox.history.ids import ids_of
from signalbox.history.parquet.metadata import parse_footer
from signalbox.history.parquet.rows import columns, names_text
from signalbox.history.stored_event import parse_event

REQUIRED = ("event_id", "occurred_at", "capability", "kind")
ID_COLUMNS = ("event_id", "message_id", "labels")


def raw_events(data: bytes, ids: Collection[str]) -> Iterator[HistoryEvent]:
    """Yield the events of a file that name one of the ids. Raises `UnreadableParquet`.

    A row without an id or a time is no event: compaction skips or completes it.
    """
    for row in _candidates(data, ids):
        if all(row.get(name) is not None for name in REQUIRED):
            event = _event(row)
            if not ids_of(event).isdisjoint(ids):
                yield event


def _candidates(data: bytes, ids: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that may name one of the ids: those with labels, and those with one as their own or message id."""

    def read(start: int, end: int) -> bytes:
        return data[start:end]

    metadata, texts = parse_footer(data), [one.encode() for one in ids]
    for group in metadata.groups:
        if not names_text(metadata, group, read, names=ID_COLUMNS, texts=texts):
            continue
        by_name = columns(metadata, group, read)
        for values in zip(*by_name.values(), strict=True):
            row = dict(zip(by_name, values, strict=True))
            if row.get("labels") or not {row.get("event_id"), row.get("message_id")}.isdisjoint(ids):
                yield row


def _event(row: Mapping[str, Any]) -> HistoryEvent:
    labels = {name: value for name, value in (row.get("labels") or {}).items() if value is not None}
    time = row["occurred_at"].replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    return parse_event({**row, "occurred_at": time, "labels": labels})
