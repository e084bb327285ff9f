"""Reading a message's fields: what is not as it should be is noted, so that all problems are told at once."""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from signalbox.sarracenia.formats.announcement import InvalidAnnouncement
from signalbox.sarracenia.formats.times import parse_time

MAXIMUM_DIGITS = 18  # an exabyte


@dataclass(frozen=True, slots=True)
class Fields:
    """An object's fields; `problems` is shared by all objects of a message."""

    values: Mapping[str, object]
    path: str
    problems: list[str]

    def problem(self, name: str, text: str) -> None:
        """Note a problem with a field."""
        self.problems.append(f"{self.path}{name}: {text}")

    def text(self, name: str) -> str | None:
        """Return a text, or None when it is not there."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        self.problem(name, f"expected a text, not {value!r:.80}")
        return None

    def required_text(self, name: str) -> str:
        """Return a text that must be there and not be empty."""
        text = self.text(name)
        if not text:
            self.problem(name, "is missing")
        return text or ""

    def number(self, name: str) -> int | None:
        """Return a whole number that is not negative, or None when it is not there; old messages have it as text."""
        value = self.values.get(name)
        if value is None:
            return None
        number = whole_number(value)
        if number is None:
            self.problem(name, f"expected a whole number, not {value!r:.80}")
        return number

    def required_number(self, name: str) -> int:
        """Return a whole number that must be there."""
        if name not in self.values:
            self.problem(name, "is missing")
        return self.number(name) or 0

    def moment(self, name: str) -> datetime | None:
        """Return a time, or None when it is not there."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return parse_time(text)
        except ValueError as error:
            self.problem(name, str(error))
            return None

    def required_moment(self, name: str) -> datetime:
        """Return a time that must be there."""
        if self.values.get(name) is None:
            self.problem(name, "is missing")
        return self.moment(name) or datetime.min.replace(tzinfo=UTC)

    def inner(self, name: str) -> "Fields | None":
        """Return the object in a field, or None when there is none."""
        value = self.values.get(name)
        if isinstance(value, Mapping):
            return Fields(value, f"{self.path}{name}.", self.problems)
        if value is not None:
            self.problem(name, f"expected an object, not {value!r:.80}")
        return None

    def base64(self, name: str) -> str:
        """Return a text in base64, without the line breaks that sr3 leaves in what it read in v02."""
        text = "".join(self.required_text(name).split())
        try:
            b64decode(text, validate=True)
        except ValueError:
            self.problem(name, f"{text[:80]!r} is not base64")
        return text

    def refuse(self) -> None:
        """Raise `InvalidAnnouncement` with one line for each problem, if there is any."""
        if self.problems:
            raise InvalidAnnouncement("\n".join(self.problems))


def whole_number(value: object) -> int | None:
    """Return a number that is not negative, of digits too; None of anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    digits = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= MAXIMUM_DIGITS
    return int(str(value)) if digits else None
