"""Parquet files of the history, read with pyarrow: row groups of the index by id, and rows of raw files."""

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# Imported by the lookup when it reads its first file: it takes longer to load than a command that asks may take.
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from signalbox.aws.history.objects import ObjectPart
from signalbox.errors import RejectedError

ID_COLUMNS = ["event_id", "message_id", "labels"]


class UnreadableParquet(RejectedError):
    """Raised when an object of the history is not a Parquet file of an index or of events."""


class ObjectFile(io.RawIOBase):
    """A file that fetches the parts that are read; `fetch` returns the bytes from a position to another."""

    def __init__(self, tail: ObjectPart, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self.size, self.fetch = tail.start + len(tail.data), fetch
        self.parts, self.position = [tail], 0

    def load(self, start: int, end: int) -> None:
        """Fetch a part that will be read, unless it was fetched."""
        if self._part(start, end) is None:
            self.parts.append(ObjectPart(self.fetch(start, end), start))

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position of the next read."""
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        return self.position

    def tell(self) -> int:
        """Return the position of the next read."""
        return self.position

    def read(self, size: int = -1) -> bytes:
        """Read from the position on."""
        start, end = self.position, self.size if size < 0 else min(self.position + size, self.size)
        self.load(start, end)
        part = self._part(start, end)
        self.position = end
        return part.data[start - part.start : end - part.start] if part else b""

    def _part(self, start: int, end: int) -> ObjectPart | None:
        return next((one for one in self.parts if one.start <= start and end <= one.start + len(one.data)), None)


class IndexFile:
    """A file of the index: the columns `id` and `event`, sorted by id. Not for several threads at a time."""

    def __init__(self, file: ObjectFile) -> None:
        """Read the file's metadata. Raises `UnreadableParquet` and what `fetch` raises."""
        self.file = file
        with _readable():
            self.parquet = pq.ParquetFile(file)
        self.bounds = list(self._bounds())
        columns, ids = self.parquet.schema_arrow.names, [one for bounds in self.bounds for one in bounds]
        if columns[:2] != ["id", "event"] or not all(isinstance(one, str) for one in ids):
            raise UnreadableParquet(f"no Parquet file of the index: its columns are {', '.join(columns)}")

    def events(self, id_: str) -> list[str]:
        """Return the JSON documents of the events of an id."""
        numbers = [number for number, bounds in enumerate(self.bounds) if bounds[0] <= id_ <= bounds[1]]
        if not numbers:
            return []
        first, last = (self.parquet.metadata.row_group(number) for number in (numbers[0], numbers[-1]))
        end = last.column(1)
        # The two columns of neighbouring row groups are one part of the file: one request.
        self.file.load(first.column(0).data_page_offset, end.data_page_offset + end.total_compressed_size)
        with _readable():
            rows = self.parquet.read_row_groups(numbers, columns=["id", "event"], use_threads=False)
        names, events = (rows.column(name).to_pylist() for name in ("id", "event"))
        return [event for name, event in zip(names, events, strict=True) if name == id_]

    def _bounds(self) -> Iterator[tuple[Any, Any]]:
        metadata = self.parquet.metadata
        for number in range(metadata.num_row_groups):
            statistics = metadata.row_group(number).column(0).statistics if metadata.num_columns else None
            yield getattr(statistics, "min", None), getattr(statistics, "max", None)


def raw_rows(data: bytes, ids: Collection[str]) -> list[Mapping[str, Any]]:
    """Return the rows of a raw file that may name one of the ids. Raises `UnreadableParquet`."""
    with _readable():
        # Hive's library, which Firehose uses, writes times as INT96, whose range exceeds that of nanoseconds.
        file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="ms")
        named = _named(file.read(columns=ID_COLUMNS, use_threads=False), ids)
        if not pc.any(named).as_py():
            return []
        return list(file.read(use_threads=False).filter(named).to_pylist())


def _named(rows: pa.Table, ids: Collection[str]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return for each row whether its ids or, if any row's do, its labels may have one of the ids."""
    wanted = pa.array(sorted(ids), pa.string())
    named = pc.or_(*(pc.is_in(rows.column(name), wanted) for name in ("event_id", "message_id")))
    labels = rows.column("labels")
    if not pa.types.is_map(labels.type):
        raise UnreadableParquet(f"no Parquet file of the history: its labels are {labels.type}")
    texts = pa.chunked_array([chunk.items for chunk in labels.chunks], pa.string())
    if any(pc.any(pc.match_substring(texts, one)).as_py() for one in ids):
        return pc.or_(named, pc.is_valid(labels))
    return named


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, KeyError, OSError) as error:
        raise UnreadableParquet(f"no Parquet file of the history: {error}") from error
