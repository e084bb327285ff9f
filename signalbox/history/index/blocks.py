"""The blocks of an index file: Parquet row groups of the columns `id` and `event`, sorted by id."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signalbox.history.event import HistoryEvent
from signalbox.history.parquet.metadata import ParquetMetadata, RowGroup
from signalbox.history.parquet.rows import columns
from signalbox.history.stored_event import parse_event

ID, EVENT = ("id",), ("event",)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Neighbouring blocks that may have an id, in the bytes of a file from `start` to before `end`."""

    metadata: ParquetMetadata
    groups: Sequence[RowGroup]

    @property
    def start(self) -> int:
        """The position of the first byte."""
        return min(group.chunks[name].start for group in self.groups for name in (ID, EVENT))

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return max(group.chunks[name].end for group in self.groups for name in (ID, EVENT))

    def events(self, id_: str, data: bytes) -> Iterator[HistoryEvent]:
        """Yield the events of an id; `data` are the bytes from `start`."""
        start = self.start
        for group in self.groups:
            rows = columns(self.metadata, group, lambda first, last: data[first - start : last - start])
            for name, event in zip(rows["id"], rows["event"], strict=True):
                if name == id_:
                    yield parse_event(json.loads(event))


def blocks_of(metadata: ParquetMetadata, id_: str) -> Blocks | None:
    """Return the blocks of a file that may have rows of an id; None if there are none."""
    groups = [group for group in metadata.groups if group.chunks[ID].may_contain(id_.encode())]
    return Blocks(metadata, groups) if groups else None
