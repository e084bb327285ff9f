"""The pages of a column: their decompression, levels and values.

Source: https://github.com/apache/parquet-format/blob/master/Encodings.md
"""

import gzip
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from signalbox.history.parquet.errors import UnreadableParquet
from signalbox.history.parquet.metadata import Chunk, Leaf
from signalbox.history.parquet.snappy import decompressed
from signalbox.history.parquet.thrift import Structure, ThriftReader

DATA_PAGE, _INDEX_PAGE, DICTIONARY_PAGE = range(3)
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
INT32, INT64, INT96, BYTE_ARRAY = 1, 2, 3, 6
CODECS: Mapping[int, Callable[[bytes], bytes]] = MappingProxyType({0: bytes, 1: decompressed, 2: gzip.decompress})
JULIAN_EPOCH = 2_440_588  # the Julian day of 1970-01-01
MICROSECONDS_OF_A_DAY = 86_400_000_000


@dataclass(slots=True)
class Column:
    """The levels and the values of a column; nulls have levels only."""

    repetitions: list[int] = field(default_factory=list)
    definitions: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its header, and its decompressed contents."""

    header: Structure
    body: bytes


def pages(data: bytes, codec: int) -> Iterator[Page]:
    """Yield the pages of a column's bytes. Raises `UnreadableParquet`."""
    if codec not in CODECS:
        raise UnreadableParquet(f"no codec of Firehose and the jobs has the number {codec}")
    position = 0
    while position < len(data):
        reader = ThriftReader(data, position)
        header = reader.structure()
        position = reader.position + header[3]
        yield Page(header, CODECS[codec](data[reader.position : position]))


def column(data: bytes, chunk: Chunk, leaf: Leaf) -> Column:
    """Decode a column of a row group. Raises `UnreadableParquet`."""
    found, dictionary = Column(), []
    for page in pages(data, chunk.codec):
        kind = page.header[1]
        if kind == DICTIONARY_PAGE:
            dictionary = _plain(page.body, leaf.kind, page.header[7][1])
        elif kind == DATA_PAGE:
            _add(found, page, leaf, dictionary)
        else:
            raise UnreadableParquet(f"the column {'.'.join(leaf.path)} has a page of type {kind}")
    return found


def _add(found: Column, page: Page, leaf: Leaf, dictionary: Sequence[Any]) -> None:
    about = page.header[5]
    count, encoding, position = about[1], about[2], 0
    levels = []
    for most in (leaf.repetition_level, leaf.definition_level):
        level, position = _levels(page.body, position, most, count)
        levels.append(level)
    present = levels[1].count(leaf.definition_level)
    body = page.body[position:]
    if encoding == PLAIN:
        found.values += _plain(body, leaf.kind, present)
    elif encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY):
        found.values += [dictionary[number] for number in _hybrid(body[1:], body[0], present)] if present else []
    else:
        raise UnreadableParquet(f"the column {'.'.join(leaf.path)} has the encoding {encoding}")
    found.repetitions += levels[0]
    found.definitions += levels[1]


def _levels(body: bytes, position: int, most: int, count: int) -> tuple[list[int], int]:
    if most == 0:
        return [0] * count, position
    start = position + 4
    end = start + int.from_bytes(body[position:start], "little")
    return _hybrid(body[start:end], most.bit_length(), count), end


def _hybrid(data: bytes, width: int, count: int) -> list[int]:
    """Decode runs of a repeated number, and of numbers packed in `width` bits."""
    reader, found, size = ThriftReader(data), list[int](), (width + 7) // 8
    if width == 0:
        return [0] * count
    while len(found) < count:
        header = reader.number()
        start = reader.position
        if header & 1:
            groups = header >> 1  # of eight numbers
            reader.position = start + groups * width
            found += _unpacked(data[start : reader.position], width)
        else:
            reader.position = start + size
            found += [int.from_bytes(data[start : reader.position], "little")] * (header >> 1)
    return found[:count]


def _unpacked(data: bytes, width: int) -> list[int]:
    mask = (1 << width) - 1
    # By eight numbers, which are `width` bytes: shifts of the whole would take quadratic time.
    groups = (int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width))
    return [group >> width * number & mask for group in groups for number in range(8)]


def _plain(body: bytes, kind: int, count: int) -> list[Any]:
    if kind == BYTE_ARRAY:
        return list(_texts(body, count))
    if kind == INT96:
        return [
            (day - JULIAN_EPOCH) * MICROSECONDS_OF_A_DAY + nanoseconds // 1000
            for nanoseconds, day in struct.iter_unpack("<qi", body[: 12 * count])
        ]
    if kind in (INT32, INT64):
        return list(struct.unpack_from(f"<{count}{'i' if kind == INT32 else 'q'}", body))
    raise UnreadableParquet(f"no field of an event has the type {kind}")


def _texts(body: bytes, count: int) -> Iterator[str]:
    position = 0
    for _ in range(count):
        start = position + 4
        position = start + int.from_bytes(body[position:start], "little")
        yield body[start:position].decode()
