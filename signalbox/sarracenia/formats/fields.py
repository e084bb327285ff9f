"""Typed access to a message's fields, which collects all problems for one error."""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from signalbox.sarracenia.formats.announcement import InvalidAnnouncement
from signalbox.sarracenia.formats.times import parse_time

MAXIMUM_DIGITS = 18  # an exabyte


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an object; all objects of a message share `problems`."""

    values: Mapping[str, object]
    path: str
    problems: list[str]

    def problem(self, name: str, text: str) -> None:
        """Record a problem with a field."""
        self.problems.append(f"{self.path}{name}: {text}")

    def text(self, name: str) -> str | None:
        """Return a text, or None when the field is missing."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        self.problem(name, f"expected a text, not {value!r:.80}")
        return None

    def required_text(self, name: str) -> str:
        """Return a text; record a problem when it is missing or empty."""
        text = self.text(name)
        if not text:
            self.problem(name, "is missing")
        return text or ""

    def number(self, name: str) -> int | None:
        """Return a non-negative integer, or None when the field is missing; old messages contain it as text."""
        value = self.values.get(name)
        if value is None:
            return None
        number = whole_number(value)
        if number is None:
            self.problem(name, f"expected a whole number, not {value!r:.80}")
        return number

    def required_number(self, name: str) -> int:
        """Return a non-negative integer; record a problem when it is missing."""
        if name not in self.values:
            self.problem(name, "is missing")
        return self.number(name) or 0

    def moment(self, name: str) -> datetime | None:
        """Return a time, or None when the field is missing."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return parse_time(text)
        except ValueError as error:
            self.problem(name, str(error))
            return None

    def required_moment(self, name: str) -> datetime:
        """Return a time; record a problem when it is missing."""
        if self.values.get(name) is None:
            self.problem(name, "is missing")
        return self.moment(name) or datetime.min.replace(tzinfo=UTC)

    def inner(self, name: str) -> "Fields | None":
        """Return the fields of a nested object, or None when the field is missing."""
        value = self.values.get(name)
        if isinstance(value, Mapping):
            return Fields(value, f"{self.path}{name}.", self.problems)
        if value is not None:
            self.problem(name, f"expected an object, not {value!r:.80}")
        return None

    def base64(self, name: str) -> str:
        """Return a text in base64, without the line breaks that sr3 leaves in values it converts from v02."""
        text = "".join(self.required_text(name).split())
        try:
            b64decode(text, validate=True)
        except ValueError:
            self.problem(name, f"{text[:80]!r} is not base64")
        return text

    def refuse(self) -> None:
        """Raise `InvalidAnnouncement` with a line for each problem, if there are problems."""
        if self.problems:
            raise InvalidAnnouncement("\n".join(self.problems))


def whole_number(value: object) -> int | None:
    """Return a non-negative integer, given as an integer or as decimal digits; None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    digits = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= MAXIMUM_DIGITS
    return int(str(value)) if digits else None
