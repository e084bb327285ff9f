"""Structs and maps encoded and decoded as Go's `encoding/json` does; its error texts are part of the protocol."""

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage, JsonDocument, JsonKind, JsonValue, parse

INTEGER_RANGE = range(-(2**63), 2**63)
MAXIMUM_QUOTED_CHARACTERS = 64  # of a number in an error text, which is returned to the sender

_SURROGATE = re.compile("[\ud800-\udfff]")
# Outside ASCII only the long s and the Kelvin sign fold to ASCII; Python's case folding folds more, as the dotless i.
_FOLDED = str.maketrans(string.ascii_uppercase + "\u017f\u212a", string.ascii_lowercase + "sk")
_ESCAPED_FOR_HTML = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"})


class FieldType(Enum):
    """The Go types of the fields in the protocol's messages."""

    TEXT = "string"
    OPTIONAL_TEXT = "*string"
    INTEGER = "int"


@dataclass(frozen=True, slots=True)
class DecodedStruct:
    """The fields of a decoded message; an unset field has Go's zero value."""

    values: Mapping[str, str | int | None]

    def text(self, name: str) -> str:
        """Return the text of a field, or an empty text if unset."""
        return str(self.values.get(name) or "")

    def optional_text(self, name: str) -> str | None:
        """Return the text of a field, or None if unset or null."""
        value = self.values.get(name)
        return None if value is None else str(value)

    def integer(self, name: str) -> int:
        """Return the integer in a field, or 0 if unset."""
        return int(self.values.get(name) or 0)


@dataclass(frozen=True, slots=True)
class Struct:
    """The Go struct of a protocol message: package, name and fields."""

    package: str
    name: str
    fields: Mapping[str, FieldType]
    allows_unknown_fields: bool = True

    def decode(self, document: bytes) -> DecodedStruct:
        """Decode a document as Go does: names in any case, the last duplicate wins, null leaves a field unchanged.

        Raises `InvalidMessage`.
        """
        values: dict[str, str | int | None] = {}
        for key, value in _object(document, f"{self.package}.{self.name}").members:
            name = self._field_name(key)
            if name is not None and (value.kind is not JsonKind.NULL or self.fields[name] is FieldType.OPTIONAL_TEXT):
                values[name] = self._converted(name, value)
        return DecodedStruct(values)

    def _field_name(self, key: str) -> str | None:
        if key in self.fields:
            return key
        for name in self.fields:
            if name.translate(_FOLDED) == key.translate(_FOLDED):
                return name
        if self.allows_unknown_fields:
            return None
        raise InvalidMessage(f"json: unknown field {json.dumps(key, ensure_ascii=False)}")

    def _converted(self, name: str, value: JsonValue) -> str | int | None:
        integer = self.fields[name] is FieldType.INTEGER
        if value.kind is JsonKind.NULL:
            return None
        if value.kind is JsonKind.STRING and not integer:
            return value.text
        if value.kind is JsonKind.NUMBER and integer:
            return self._integer(name, value.text)
        raise self._mismatch(name, str(value.kind))

    def _integer(self, name: str, literal: str) -> int:
        # Python refuses to convert very long literals, so the length comes first.
        if len(literal) <= len(str(INTEGER_RANGE.start)) and literal.removeprefix("-").isdecimal():
            number = int(literal)
            if number in INTEGER_RANGE:
                return number
        raise self._mismatch(name, f"number {_shortened(literal)}")

    def _mismatch(self, name: str, found: str) -> InvalidMessage:
        expected = self.fields[name].value.removeprefix("*")
        field = f"{self.name}.{name}"
        return InvalidMessage(f"json: cannot unmarshal {found} into Go struct field {field} of type {expected}")


def decode_map(document: bytes) -> dict[str, JsonValue]:
    """Decode a document as Go does into a `map[string]interface {}`; null is an empty map. Raises `InvalidMessage`."""
    parsed = _object(document, "map[string]interface {}")
    for literal in parsed.numbers:
        if abs(float(literal)) == float("inf"):
            raise InvalidMessage(f"json: cannot unmarshal number {_shortened(literal)} into Go value of type float64")
    return dict(parsed.members)


def _object(document: bytes, expected: str) -> JsonDocument:
    parsed = parse(document)
    if parsed.top.kind not in (JsonKind.OBJECT, JsonKind.NULL):
        raise InvalidMessage(f"json: cannot unmarshal {parsed.top.kind} into Go value of type {expected}")
    return parsed


def encode(members: Mapping[str, str | int | None]) -> str:
    """Encode an object as Go does: no spaces, keys in the given order, `<`, `>` and `&` escaped."""
    written = json.dumps(members, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED_FOR_HTML)
    return _SURROGATE.sub(r"\\ufffd", written)


def _shortened(literal: str) -> str:
    if len(literal) <= MAXIMUM_QUOTED_CHARACTERS:
        return literal
    return literal[:MAXIMUM_QUOTED_CHARACTERS] + "…"
