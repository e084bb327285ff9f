"""Structures in Thrift's compact protocol, the form of Parquet's metadata.

Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from collections.abc import Callable
from typing import Any

from signalbox.history.parquet.errors import UnreadableParquet

Structure = dict[int, Any]
"""A structure by field number; texts are bytes. Parquet's definition gives the type of each field."""
TRUE, FALSE, BYTE, SHORT, INTEGER, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCTURE = range(1, 13)
STOP = 0
LONG_LIST = 15
DOUBLE_BYTES = 8


class ThriftReader:
    """A reader that advances `position` through bytes. Its methods raise `UnreadableParquet`."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data, self.position = data, position
        self._readers: dict[int, Callable[[], Any]] = {
            TRUE: lambda: True,
            FALSE: lambda: False,
            BYTE: self._byte,
            **dict.fromkeys((SHORT, INTEGER, LONG), self._signed),
            DOUBLE: lambda: self._taken(DOUBLE_BYTES),
            BINARY: lambda: self._taken(self.number()),
            **dict.fromkeys((LIST, SET), self._list),
            MAP: self._map,
            STRUCTURE: self.structure,
        }

    def structure(self) -> Structure:
        """Read a structure."""
        found: Structure = {}
        number = 0
        while (header := self._byte()) != STOP:
            number = number + (header >> 4) if header >> 4 else self._signed()
            found[number] = self._value(header & 15)
        return found

    def number(self) -> int:
        """Read an unsigned number of variable length."""
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 - the highest bit continues the number
                return result
            shift += 7

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - the fields of a structure have any type
        if kind not in self._readers:
            raise UnreadableParquet(f"no Thrift type has the number {kind}, at byte {self.position}")
        return self._readers[kind]()

    def _list(self) -> list[Any]:
        header = self._byte()
        count = header >> 4 if header >> 4 < LONG_LIST else self.number()
        return self._values(header & 15, count)

    def _values(self, kind: int, count: int) -> list[Any]:
        if kind in (TRUE, FALSE):  # elements of a list are a byte each
            return [self._byte() == TRUE for _ in range(count)]
        return [self._value(kind) for _ in range(count)]

    def _map(self) -> dict[Any, Any]:
        count = self.number()
        kinds = self._byte() if count else 0
        pairs = [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(count)]
        return {key: value for key, value in pairs if not isinstance(key, list | dict)}

    def _signed(self) -> int:
        number = self.number()
        return (number >> 1) ^ -(number & 1)

    def _byte(self) -> int:
        return self._taken(1)[0]

    def _taken(self, count: int) -> bytes:
        taken = self.data[self.position : self.position + count]
        if len(taken) < count:
            raise UnreadableParquet(f"the metadata ends within a field, at byte {self.position}")
        self.position += count
        return taken
