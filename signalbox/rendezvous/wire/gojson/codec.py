"""JSON as Go's `encoding/json` reads and writes it: its rules and its error texts are part of the protocol."""

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from signalbox.rendezvous.wire.gojson.scanner import InvalidJson, Kind, Value, parse

INTEGER_RANGE = range(-(2**63), 2**63)
MAXIMUM_QUOTED_CHARACTERS = 64  # of a number in an error text, which goes back to whoever sent it

_SURROGATE = re.compile("[\ud800-\udfff]")
# Besides ASCII only the long s and the Kelvin sign fold into it; Python's own ways would fold more, as the dotless i.
_FOLDED = str.maketrans(string.ascii_uppercase + "\u017f\u212a", string.ascii_lowercase + "sk")
_ESCAPED_FOR_HTML = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"})


class FieldType(Enum):
    """The Go types that occur in the protocol's messages."""

    TEXT = "string"
    OPTIONAL_TEXT = "*string"
    INTEGER = "int"


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a decoded message; an unset one has Go's zero value."""

    values: Mapping[str, str | int | None]

    def text(self, name: str) -> str:
        """Return the text of a field, empty if unset."""
        return str(self.values.get(name) or "")

    def optional_text(self, name: str) -> str | None:
        """Return the text of a field, None if unset or null."""
        value = self.values.get(name)
        return None if value is None else str(value)

    def integer(self, name: str) -> int:
        """Return the integer in a field, 0 if unset."""
        return int(self.values.get(name) or 0)


@dataclass(frozen=True, slots=True)
class Struct:
    """A message of the protocol: its Go type and its fields."""

    package: str
    name: str
    fields: Mapping[str, FieldType]
    allows_unknown_fields: bool = True

    def decode(self, document: bytes) -> Record:
        """Read a document as Go does: names in any case, the last duplicate wins, null leaves a field as it is.

        Raises `InvalidJson`.
        """
        parsed = parse(document)
        if parsed.top.kind not in (Kind.OBJECT, Kind.NULL):
            raise InvalidJson(
                f"json: cannot unmarshal {parsed.top.kind} into Go value of type {self.package}.{self.name}"
            )
        values: dict[str, str | int | None] = {}
        for key, value in parsed.members:
            name = self._field_name(key)
            if name is not None and (value.kind is not Kind.NULL or self.fields[name] is FieldType.OPTIONAL_TEXT):
                values[name] = self._converted(name, value)
        return Record(values)

    def _field_name(self, key: str) -> str | None:
        if key in self.fields:
            return key
        for name in self.fields:
            if name.translate(_FOLDED) == key.translate(_FOLDED):
                return name
        if self.allows_unknown_fields:
            return None
        raise InvalidJson(f"json: unknown field {json.dumps(key, ensure_ascii=False)}")

    def _converted(self, name: str, value: Value) -> str | int | None:
        integer = self.fields[name] is FieldType.INTEGER
        if value.kind is Kind.NULL:
            return None
        if value.kind is Kind.STRING and not integer:
            return value.text
        if value.kind is Kind.NUMBER and integer:
            return self._integer(name, value.text)
        raise self._mismatch(name, str(value.kind))

    def _integer(self, name: str, literal: str) -> int:
        # Python refuses to convert very long literals, so the length comes first.
        if len(literal) <= len(str(INTEGER_RANGE.start)) and literal.removeprefix("-").isdecimal():
            number = int(literal)
            if number in INTEGER_RANGE:
                return number
        raise self._mismatch(name, f"number {_shortened(literal)}")

    def _mismatch(self, name: str, found: str) -> InvalidJson:
        expected = self.fields[name].value.removeprefix("*")
        return InvalidJson(f"json: cannot unmarshal {found} into Go struct field {self.name}.{name} of type {expected}")


def decode_map(document: bytes) -> dict[str, Value]:
    """Read a document as Go reads one into a `map[string]interface {}`; null is an empty one. Raises `InvalidJson`."""
    parsed = parse(document)
    if parsed.top.kind not in (Kind.OBJECT, Kind.NULL):
        raise InvalidJson(f"json: cannot unmarshal {parsed.top.kind} into Go value of type map[string]interface {{}}")
    for literal in parsed.numbers:
        if abs(float(literal)) == float("inf"):
            raise InvalidJson(f"json: cannot unmarshal number {_shortened(literal)} into Go value of type float64")
    return dict(parsed.members)


def encode(members: Mapping[str, str | int | None]) -> str:
    """Write an object as Go does: no spaces, the keys in the given order, HTML's marks escaped."""
    written = json.dumps(members, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED_FOR_HTML)
    return _SURROGATE.sub(r"\\ufffd", written)


def _shortened(literal: str) -> str:
    if len(literal) <= MAXIMUM_QUOTED_CHARACTERS:
        return literal
    return literal[:MAXIMUM_QUOTED_CHARACTERS] + "…"
