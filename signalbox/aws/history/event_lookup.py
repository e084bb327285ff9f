"""The lookup of events by id in S3: by the index, and by raw files that the index does not have yet."""

import json
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import partial
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from signalbox.aws.history.objects import HistoryObjects, LookupUsage
from signalbox.errors import EffectFailed, RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.history.ids import ids_of, search_keys
from signalbox.history.index.days import (
    DAYS_PREFIX,
    IndexedDay,
    RawHours,
    arrival_end,
    day_of_key,
    days_of,
    unsettled_hours,
)
from signalbox.history.index.raw_files import events_of_rows
from signalbox.history.lookup import EventWindow, unique_events
from signalbox.history.stored_event import parse_event
from signalbox.parallel import ParallelMap

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

    from signalbox.aws.history.parquet_files import IndexFile

MAX_LISTS = 5  # of documents of the index, while compaction replaces them
THREADS = 8  # calls at the same time; boto3 keeps ten connections
TAIL_BYTES = 64 * 1024  # read first of an index file: as many as pyarrow reads, which contain the footer of most files
KEPT_BYTES = 64 * 1024 * 1024  # of raw files, for the next ids of the same trace


@dataclass(slots=True)
class S3EventLookup:
    """`EventLookup` of the history bucket at the time `now`; it keeps what it has read for the next call."""

    s3: "S3Client"
    bucket: str
    now: datetime
    _objects: HistoryObjects = field(init=False)
    _days: dict[date, IndexedDay] = field(default_factory=dict)
    _files: "dict[str, IndexFile]" = field(default_factory=dict)
    _listed: dict[RawHours, list[str]] = field(default_factory=dict)
    _raw: dict[str, bytes] = field(default_factory=dict)
    _raw_bytes: int = 0
    _unreadable: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Wrap the client."""
        self._objects = HistoryObjects(self.s3, self.bucket)

    @property
    def usage(self) -> LookupUsage:
        """The requests and bytes of all calls until now."""
        return self._objects.usage

    @property
    def unreadable(self) -> list[str]:
        """The keys of damaged objects, whose events are missing."""
        return sorted(self._unreadable)

    def events(self, ids: Collection[str], window: EventWindow) -> list[HistoryEvent]:
        """Return the events of a window that name one of the ids, each once, in order of time.

        Objects that are damaged, or are no files of events, are left out, and are in `unreadable`. Raises
        `EffectFailed`.
        """
        with ThreadPoolExecutor(THREADS) as threads:
            self._load_days(threads.map, window)
            found = chain(self._indexed(threads.map, ids, window), self._recent(threads.map, ids, window))
            return unique_events(
                event for event in found if event.occurred_at in window and not ids_of(event).isdisjoint(ids)
            )

    def _load_days(self, parallel: ParallelMap, window: EventWindow) -> None:
        days = days_of(window.start, max(window.end, arrival_end(window, self.now)))
        if not self._days.keys() >= set(days):
            # All days are those of one moment: an event of one can be in a file that another one marks as read.
            every = days_of(*(datetime.combine(find((*self._days, *days)), time(), UTC) for find in (min, max)))
            self._days = self._documents(parallel, every)

    def _documents(self, parallel: ParallelMap, days: Sequence[date]) -> dict[date, IndexedDay]:
        """Return the state of the days at one moment: that of a LIST, whose documents are then all read."""
        for _ in range(MAX_LISTS):
            listed = self._objects.keys(DAYS_PREFIX, start_after=f"{DAYS_PREFIX}{days[0]}")
            keys = [key for key, _ in takewhile(lambda found: day_of_key(found[0]) <= f"{days[-1]}", listed)]
            texts = dict(zip(keys, parallel(self._objects.find, keys), strict=True))
            if None not in texts.values():
                return {
                    day: IndexedDay.join(
                        [
                            self._document(key, text)
                            for key, text in texts.items()
                            if text is not None and day_of_key(key) == f"{day}"
                        ]
                    )
                    for day in days
                }
        raise EffectFailed(
            f"compaction replaced documents of s3://{self.bucket}/{DAYS_PREFIX} during each of {MAX_LISTS} reads"
        )

    def _document(self, key: str, text: bytes) -> IndexedDay | None:
        with self._readable(key):
            return IndexedDay.parse(json.loads(text))
        return None

    def _indexed(self, parallel: ParallelMap, ids: Collection[str], window: EventWindow) -> Iterator[HistoryEvent]:
        ids_searched = sorted({key for one in ids for key in search_keys(one)})
        places: dict[str, list[str]] = {}
        for segment in (one for day in days_of(window.start, window.end) for one in self._days[day].segments):
            for id_ in ids_searched:
                if (key := segment.key(id_)) is not None:
                    places.setdefault(key, []).append(id_)
        for found in parallel(lambda place: self._rows(*place), places.items()):
            yield from found

    def _rows(self, key: str, ids: Sequence[str]) -> list[HistoryEvent]:
        from signalbox.aws.history.parquet_files import IndexFile, ObjectFile  # noqa: PLC0415 - slow to load

        with self._readable(key):
            if key not in self._files:
                tail = self._objects.tail(key, TAIL_BYTES)
                self._files[key] = IndexFile(ObjectFile(tail, partial(self._objects.part, key)))
            return [parse_event(json.loads(text)) for one in ids for text in self._files[key].events(one)]
        return []

    def _recent(self, parallel: ParallelMap, ids: Collection[str], window: EventWindow) -> Iterator[HistoryEvent]:
        hours = list(unsettled_hours(self._days, window, self.now))
        unknown = [of_day for of_day in hours if of_day not in self._listed]
        self._listed.update(zip(unknown, parallel(self._unread, unknown), strict=True))
        files = [key for of_day in hours for key in self._listed[of_day]]
        for found in parallel(partial(self._raw_events, ids), files):
            yield from found

    def _unread(self, hours: RawHours) -> list[str]:
        """Return the keys of the raw files that compaction has not read."""
        indexed = self._days[hours.day]
        found = self._objects.keys(hours.prefix, start_after=hours.start_after)
        return [
            key
            for key, modified_at in found
            if (hour := hours.hour_of(key)) is not None and not indexed.has_read(hour, modified_at=modified_at)
        ]

    def _raw_events(self, ids: Collection[str], key: str) -> Sequence[HistoryEvent]:
        from signalbox.aws.history.parquet_files import raw_rows  # noqa: PLC0415 - slow to load

        data = self._raw.get(key)
        if data is None:
            data = self._objects.find(key)
            if data is None:  # expired since it was listed
                return ()
            if self._raw_bytes < KEPT_BYTES:  # several threads add to it, so it is no exact limit
                self._raw[key] = data
                self._raw_bytes += len(data)
        with self._readable(key):
            return list(events_of_rows(raw_rows(data, ids), ids))
        return ()

    @contextmanager
    def _readable(self, key: str) -> Iterator[None]:
        """Leave out an object whose content is rejected; failures to read it are raised."""
        try:
            yield
        except (RejectedError, ValueError):  # of the index, of events, of Parquet; of JSON
            self._unreadable.add(key)
