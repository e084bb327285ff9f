"""The past that a question is about: a duration up to now, in minutes or in hours."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from signalbox.errors import RejectedError

UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=31)
LONGEST_IN_MINUTES = timedelta(hours=6)
MAXIMUM_DIGITS = 6
MONTH = timedelta(days=30)


class InvalidWindow(RejectedError):
    """Raised when a text is not the duration of a past that can be asked about."""


class Bucket(Enum):
    """The step in which messages are counted; `characters` is the length of its beginning in a timestamp's text."""

    MINUTE = ("minute", timedelta(minutes=1), len("2026-11-20 10:00"))
    HOUR = ("hour", timedelta(hours=1), len("2026-11-20 10"))

    def __init__(self, word: str, length: timedelta, characters: int) -> None:
        self.word, self.length, self.characters = word, length, characters

    def begin(self, moment: datetime) -> datetime:
        """Return the beginning of a time's bucket."""
        whole = moment.replace(second=0, microsecond=0)
        return whole if self is Bucket.MINUTE else whole.replace(minute=0)


@dataclass(frozen=True, slots=True)
class PastWindow:
    """The time from `start` to before `end`, both in UTC."""

    start: datetime
    end: datetime

    @classmethod
    def before(cls, now: datetime, text: str) -> "PastWindow":
        """Return the window of a duration such as `90m`, `2h`, `7d` or `1w` before a time. Raises `InvalidWindow`."""
        length = _duration(text)
        if not SHORTEST <= length <= LONGEST:
            raise InvalidWindow(f"expected a duration from 1m to {LONGEST.days}d, not {text!r}")
        end = now.astimezone(UTC)
        return cls(end - length, end)

    @property
    def bucket(self) -> Bucket:
        """Return the step in which messages are counted: minutes up to six hours."""
        return Bucket.MINUTE if self.length <= LONGEST_IN_MINUTES else Bucket.HOUR

    @property
    def length(self) -> timedelta:
        """Return the duration."""
        return self.end - self.start

    @property
    def months(self) -> float:
        """Return the number of months of 30 days."""
        return self.length / MONTH

    def buckets(self) -> Iterator[datetime]:
        """Yield the beginnings of all buckets, from that of the start."""
        step = self.bucket
        begin = step.begin(self.start)
        while begin < self.end:
            yield begin
            begin += step.length


def parse_bucket(text: str) -> datetime:
    """Return the beginning of a bucket from its text, `YYYY-MM-DD HH` or `YYYY-MM-DD HH:MM`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _duration(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit in UNITS and number.isascii() and number.isdigit() and len(number) <= MAXIMUM_DIGITS:
        return int(number) * UNITS[unit]
    units = ", ".join(UNITS)
    raise InvalidWindow(f"expected a number with a unit ({units}), such as 2h or 7d, not {text!r}")
