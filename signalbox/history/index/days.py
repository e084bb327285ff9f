"""The documents of a day in the index: the files that hold its events, and the raw hours that have been read.

Compaction writes them (glue_jobs/shared/event_index.py). A document is never changed: a run writes a new one, and then
deletes the documents whose content it has, so the documents that exist at a moment are valid together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from zlib import crc32

from signalbox.documents import Problems, Section
from signalbox.errors import RejectedError
from signalbox.history.lookup import EventWindow

VERSION = 1
INDEX_PREFIX, RAW_PREFIX = "index/", "raw/"
DAYS_PREFIX = f"{INDEX_PREFIX}days/"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MAX_LATENESS = DAY  # of an event that the index has not read yet; docs/history.md
# Firehose may write a file of an hour after the hour's end, and S3 dates a file by the start of its upload.
SETTLED_AFTER, UPLOAD_DURATION = HOUR, timedelta(minutes=5)


class InvalidIndex(RejectedError):
    """Raised when a document of the index cannot be parsed; the next compaction of its day deletes it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Files with events of a day, one for each bucket of ids; a bucket without events has no file."""

    folder: str
    ending: str
    files: tuple[str, ...]

    def key(self, id_: str) -> str | None:
        """Return the object key of the file that has the rows of an id; None if there are none."""
        if not self.files:
            return None
        name = self.files[crc32(id_.encode()) % len(self.files)]
        return f"{INDEX_PREFIX}{self.folder}/{name}{self.ending}" if name else None


@dataclass(frozen=True, slots=True)
class IndexedDay:
    """A day of the index.

    `read_at` is the time at which compaction began to read each raw hour of the day; `replaced` has the folders whose
    events other segments have.
    """

    segments: tuple[Segment, ...] = ()
    read_at: Mapping[int, datetime] = field(default_factory=lambda: MappingProxyType({}))
    replaced: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, document: object) -> "IndexedDay":
        """Parse a document of the day. Raises `InvalidIndex`."""
        problems = Problems()
        found = Section.of(document, "index", problems)
        if found.fields.get("version") != VERSION:
            found.problem("version", f"expected {VERSION}, not {found.fields.get('version')!r}")
        segments = tuple(
            Segment(one.required_text("folder"), one.text("ending") or "", one.texts("files"))
            for one in found.sections("segments")
        )
        read_at = dict(_hours(found))
        replaced = frozenset(found.texts_by_name("replaced") or ())
        problems.refuse(InvalidIndex)
        return cls(segments, read_at, replaced)

    @classmethod
    def join(cls, documents: Sequence["IndexedDay | None"]) -> "IndexedDay":
        """Merge the documents of a day; if one is damaged (None), events may be missing: no hour counts as read."""
        readable = [one for one in documents if one is not None]
        replaced = frozenset(folder for one in readable for folder in one.replaced)
        segments = {one.folder: one for document in readable for one in document.segments if one.folder not in replaced}
        marks = (
            sorted(mark for one in readable for mark in one.read_at.items()) if len(readable) == len(documents) else ()
        )
        return cls(tuple(segments.values()), dict(marks), replaced)

    def is_settled(self, day: date, hour: int) -> bool:
        """Return whether no file of a raw hour of this day is expected after those that compaction has read."""
        end = datetime.combine(day, time(hour), UTC) + HOUR
        return hour in self.read_at and self.read_at[hour] >= end + SETTLED_AFTER

    def has_read(self, hour: int, *, modified_at: datetime) -> bool:
        """Return whether compaction has read a raw file of an hour."""
        return hour in self.read_at and modified_at < self.read_at[hour] - UPLOAD_DURATION


@dataclass(frozen=True, slots=True)
class RawHours:
    """The raw hours of a day, from `first` to `last`, of which the index may lack events."""

    day: date
    first: int
    last: int

    @property
    def prefix(self) -> str:
        """The prefix of the day's raw files."""
        return f"{RAW_PREFIX}dt={self.day}/"

    @property
    def start_after(self) -> str:
        """The key after which the files of these hours begin."""
        return f"{self.prefix}hour={self.first:02}"

    def hour_of(self, key: str) -> int | None:
        """Return the hour of a file's key; None if it is not one of these hours."""
        text = key.removeprefix(f"{self.prefix}hour=").partition("/")[0]
        hour = int(text) if text.isdigit() else -1
        return hour if self.first <= hour <= self.last else None


def day_of_key(key: str) -> str:
    """Return the day, such as 2026-11-20, of the object key of a document."""
    return key.removeprefix(DAYS_PREFIX)[: len("YYYY-MM-DD")]


def days_of(start: datetime, end: datetime) -> list[date]:
    """Return the UTC days from a time to another, both inclusive."""
    first, last = start.astimezone(UTC).date(), end.astimezone(UTC).date()
    return [first + DAY * ahead for ahead in range((last - first).days + 1)]


def arrival_end(window: EventWindow, now: datetime) -> datetime:
    """Return the last time at which an event of a window can arrive that the index does not have."""
    return min(now, window.end + MAX_LATENESS)


def unsettled_hours(days: Mapping[date, IndexedDay], window: EventWindow, now: datetime) -> Iterator[RawHours]:
    """Yield the raw hours whose files the index may not have all, by day."""
    start, end = window.start.astimezone(UTC), arrival_end(window, now).astimezone(UTC)
    for day in days_of(start, end):
        first = start.hour if day == start.date() else 0
        last = end.hour if day == end.date() else 23
        indexed = days.get(day, IndexedDay())
        open_hours = [hour for hour in range(first, last + 1) if not indexed.is_settled(day, hour)]
        if open_hours:
            yield RawHours(day, open_hours[0], open_hours[-1])


def _hours(found: Section) -> Iterator[tuple[int, datetime]]:
    for hour, text in (found.texts_by_name("read_at") or {}).items():
        try:
            yield int(hour), datetime.fromisoformat(text).astimezone(UTC)
        except ValueError:
            found.problem("read_at", f"expected times by hour, not {hour!r}: {text!r}")
