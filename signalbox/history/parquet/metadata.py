"""The footer of a Parquet file: its columns, and the place of each row group's columns.

Source of the field numbers: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from signalbox.history.parquet.errors import UnreadableParquet
from signalbox.history.parquet.thrift import Structure, ThriftReader

MAGIC = b"PAR1"
ENDING = 8  # the length of the metadata in four bytes, and MAGIC
OPTIONAL, REPEATED = 1, 2
CONVERTED_MILLISECONDS, CONVERTED_MICROSECONDS = 9, 10
LOGICAL_TIMESTAMP = 8

Path = tuple[str, ...]


class TimeUnit(Enum):
    """The unit of a timestamp, with the number of units in a microsecond as a fraction (units, microseconds)."""

    MILLISECONDS = (1, 1000)
    MICROSECONDS = (1, 1)
    NANOSECONDS = (1000, 1)


CONVERTED_UNITS = {CONVERTED_MILLISECONDS: TimeUnit.MILLISECONDS, CONVERTED_MICROSECONDS: TimeUnit.MICROSECONDS}
LOGICAL_UNITS = {1: TimeUnit.MILLISECONDS, 2: TimeUnit.MICROSECONDS, 3: TimeUnit.NANOSECONDS}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that has values, with its levels; `entry_level` is the definition level of an entry of a map."""

    path: Path
    kind: int
    definition_level: int
    repetition_level: int
    entry_level: int
    unit: TimeUnit | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes of a column in a row group; `least` and `most` are bounds of its values, if known."""

    start: int
    size: int
    codec: int
    values: int
    least: bytes | None
    most: bytes | None

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.start + self.size

    def may_contain(self, value: bytes) -> bool:
        """Return whether the bounds allow a value."""
        return (self.least is None or self.least <= value) and (self.most is None or value <= self.most)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A part of a file's rows, by column."""

    rows: int
    chunks: Mapping[Path, Chunk]


@dataclass(frozen=True, slots=True)
class ParquetMetadata:
    """The metadata of a file."""

    leaves: Sequence[Leaf]
    groups: Sequence[RowGroup]


def footer_size(tail: bytes) -> int:
    """Return the size of a file's footer from the file's last bytes. Raises `UnreadableParquet`."""
    if len(tail) < ENDING or tail[-len(MAGIC) :] != MAGIC:
        raise UnreadableParquet("no Parquet file: it does not end with PAR1")
    return int.from_bytes(tail[-ENDING : -len(MAGIC)], "little") + ENDING


def parse_footer(tail: bytes) -> ParquetMetadata:
    """Parse the metadata from a file's last bytes, at least `footer_size`. Raises `UnreadableParquet`."""
    size = footer_size(tail)
    if size > len(tail):
        raise UnreadableParquet(f"the footer has {size} bytes, of which {len(tail)} are given")
    found = ThriftReader(tail[-size:-ENDING]).structure()
    elements = iter(found[2])
    next(elements)  # the root
    leaves = tuple(_leaves(elements, found[2][0][5], _Branch()))
    return ParquetMetadata(leaves, tuple(map(_row_group, found[4])))


@dataclass(frozen=True, slots=True)
class _Branch:
    """The ancestors of a column: their names and levels."""

    path: Path = ()
    definition_level: int = 0
    repetition_level: int = 0
    entry_level: int = 0

    def child(self, element: Structure) -> "_Branch":
        repetition = element.get(3, 0)
        definition_level = self.definition_level + (repetition in (OPTIONAL, REPEATED))
        return _Branch(
            (*self.path, element[4].decode()),
            definition_level,
            self.repetition_level + (repetition == REPEATED),
            definition_level if repetition == REPEATED else self.entry_level,
        )


def _leaves(elements: Iterator[Structure], count: int, branch: _Branch) -> Iterator[Leaf]:
    """Yield the columns of the next `count` elements; the schema is in depth-first order."""
    for _ in range(count):
        element = next(elements)
        child = branch.child(element)
        if element.get(5):
            yield from _leaves(elements, element[5], child)
        else:
            levels = (child.definition_level, child.repetition_level, child.entry_level)
            yield Leaf(child.path, element[1], *levels, _unit(element))


def _unit(element: Structure) -> TimeUnit | None:
    logical = element.get(10, {}).get(LOGICAL_TIMESTAMP)
    if logical is not None:
        return LOGICAL_UNITS[next(iter(logical[2]))]
    return CONVERTED_UNITS.get(element.get(6, -1))


def _row_group(group: Structure) -> RowGroup:
    return RowGroup(group[3], dict(map(_chunk, group[1])))


def _chunk(column: Structure) -> tuple[Path, Chunk]:
    about = column[3]
    statistics = about.get(12, {})
    # A dictionary precedes the pages; some writers set its position to 0 where there is none.
    start = min(filter(None, (about[9], about.get(11))))
    path = tuple(name.decode() for name in about[3])
    return path, Chunk(start, about[7], about[4], about[5], statistics.get(6), statistics.get(5))
