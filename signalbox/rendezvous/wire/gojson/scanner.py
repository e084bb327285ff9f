"""A JSON scanner that accepts the same documents as Go's scanner and raises its error texts."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from signalbox.errors import RejectedError

MAXIMUM_DEPTH = 10_000  # Go's own limit on nesting
REPLACEMENT = "\ufffd"  # Go's replacement for bytes and escapes that are not Unicode

_SPACE = re.compile(rb"[ \t\r\n]*")
_DIGITS = re.compile(rb"[0-9]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_QUOTE, _OPEN_ARRAY = ord('"'), ord("[")
_CLOSERS = {ord("{"): ord("}"), _OPEN_ARRAY: ord("]")}
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTED = {
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "'": "\\'",
    "\\": "\\\\",
}


class InvalidMessage(RejectedError):
    """Raised when a message or a part of it violates the protocol; its text is Go's or upstream's."""


class JsonKind(StrEnum):
    """The kind of a JSON value, as named in Go's error texts."""

    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"
    NULL = "null"
    OBJECT = "object"
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A JSON value; `text` is the content of a string or the literal of a number."""

    kind: JsonKind
    text: str = ""


_LITERALS = {ord("t"): ("true", JsonKind.BOOL), ord("f"): ("false", JsonKind.BOOL), ord("n"): ("null", JsonKind.NULL)}


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A parsed document: its top value and, for an object, its members in order, including duplicates."""

    top: JsonValue
    members: tuple[tuple[str, JsonValue], ...]
    numbers: tuple[str, ...]  # the literals at any depth


def text_of(raw: bytes) -> str:
    """Decode UTF-8, with one replacement character for each invalid byte (Python's decoder inserts fewer)."""
    return _SURROGATE.sub(REPLACEMENT, raw.decode("utf-8", "surrogateescape"))


def parse(document: bytes) -> JsonDocument:
    """Parse a document. Raises `InvalidMessage`."""
    return _Reader(document).document()


class _Reader:
    """A scanner that reads a document once, without recursion, and raises the error texts of Go's scanner."""

    __slots__ = ("at", "closers", "just_opened", "members", "numbers", "source")

    def __init__(self, document: bytes) -> None:
        # Go passes its scanner one more space at the end, which its error text for an unfinished literal shows.
        self.source = document + b" "
        self.at = 0
        self.closers: list[int] = []  # one for each open object and array
        self.just_opened = False
        self.members: list[tuple[str, JsonValue]] = []
        self.numbers: list[str] = []

    def document(self) -> JsonDocument:
        top = self._value()
        while self.closers:
            self._next_element()
        self._skip_space()
        if self.at < len(self.source):
            self._fail("after top-level value")
        return JsonDocument(top, tuple(self.members), tuple(self.numbers))

    def _next_element(self) -> None:
        closer, first, self.just_opened = self.closers[-1], self.just_opened, False
        byte = self._byte_after_space()
        if byte == closer:
            self.at += 1
            self.closers.pop()
            return
        if not first:
            self._expect(
                b",", "after array element" if closer == _CLOSERS[_OPEN_ARRAY] else "after object key:value pair"
            )
        self._element(in_array=closer == _CLOSERS[_OPEN_ARRAY])

    def _element(self, *, in_array: bool) -> None:
        if in_array:
            self._value()
            return
        outermost = len(self.closers) == 1
        key, value = self._key(), self._value()
        if outermost:
            self.members.append((key, value))

    def _key(self) -> str:
        if self._byte_after_space() != _QUOTE:
            self._fail("looking for beginning of object key string")
        key = self._string()
        self._skip_space()
        self._expect(b":", "after object key")
        return key

    def _value(self) -> JsonValue:
        """Read a string, number or literal, or the opening bracket of an object or array."""
        byte = self._byte_after_space()
        if byte in _CLOSERS:
            return self._opened(byte)
        if byte == _QUOTE:
            return JsonValue(JsonKind.STRING, self._string())
        if byte in b"-0123456789":
            return JsonValue(JsonKind.NUMBER, self._number())
        if byte not in _LITERALS:
            self._fail("looking for beginning of value")
        return self._literal(*_LITERALS[byte])

    def _opened(self, byte: int) -> JsonValue:
        self.closers.append(_CLOSERS[byte])
        if len(self.closers) > MAXIMUM_DEPTH:
            self._fail("exceeded max depth")
        self.at += 1
        self.just_opened = True
        return JsonValue(JsonKind.ARRAY if byte == _OPEN_ARRAY else JsonKind.OBJECT)

    def _literal(self, word: str, kind: JsonKind) -> JsonValue:
        self.at += 1
        for letter in word[1:]:
            self._expect(letter.encode(), f"in literal {word} (expecting {letter!r})")
        return JsonValue(kind)

    def _number(self) -> str:
        start = self.at
        if self._take(b"-") and self._byte() not in b"0123456789":
            self._fail("in numeric literal")
        if not self._take(b"0"):
            self._skip(_DIGITS)
        if self._take(b"."):
            self._digits("after decimal point in numeric literal")
        if self._take(b"eE"):
            self._take(b"+-")
            self._digits("in exponent of numeric literal")
        self.numbers.append(self.source[start : self.at].decode("ascii"))
        return self.numbers[-1]

    def _digits(self, context: str) -> None:
        self._expect(b"0123456789", context)
        self._skip(_DIGITS)

    def _string(self) -> str:
        self.at += 1
        start = self.at
        self._skip(_PLAIN)
        while self._byte() != _QUOTE:
            self._escape()
            self._skip(_PLAIN)
        self.at += 1
        return _unescaped(text_of(self.source[start : self.at - 1]))

    def _escape(self) -> None:
        self._expect(b"\\", "in string literal")
        if not self._take(b"u"):
            self._expect(b'bfnrt\\/"', "in string escape code")
            return
        for _ in range(4):
            self._expect(_HEXADECIMAL, "in \\u hexadecimal character escape")

    def _expect(self, choice: bytes, context: str) -> None:
        if not self._take(choice):
            self._fail(context)

    def _take(self, choice: bytes) -> bool:
        if self._byte() not in choice:
            return False
        self.at += 1
        return True

    def _byte_after_space(self) -> int:
        self._skip_space()
        return self._byte()

    def _byte(self) -> int:
        if self.at == len(self.source):
            raise InvalidMessage("unexpected end of JSON input")
        return self.source[self.at]

    def _skip_space(self) -> None:
        self._skip(_SPACE)

    def _skip(self, pattern: re.Pattern[bytes]) -> None:
        match = pattern.match(self.source, self.at)
        self.at = match.end() if match else self.at

    def _fail(self, context: str) -> NoReturn:
        raise InvalidMessage(f"invalid character {_quoted(self.source[self.at])} {context}")


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    replaced = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2]), text)
    # UTF-16 joins surrogate pairs to one character and replaces lone surrogates.
    return replaced.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _quoted(byte: int) -> str:
    """Return the character with this number as Go quotes it."""
    character = chr(byte)
    if character in _QUOTED:
        return f"'{_QUOTED[character]}'"
    if character.isprintable():
        return f"'{character}'"
    return f"'\\u{byte:04x}'" if byte > 0x7F else f"'\\x{byte:02x}'"  # noqa: PLR2004 (the last of ASCII)
