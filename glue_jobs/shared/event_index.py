"""The index of events by id, which compaction writes for `signalbox trace`.

<index_path>/days/YYYY-MM-DD-<name>.json  a document of a day: its segments, and the raw hours that have been read
<index_path>/YYYY-MM-DD/<segment>/bucket=<number>/part-…
                                          Parquet files of a segment with the columns `id` and `event`, sorted by id, in
                                          small row groups; an id is in the bucket crc32(id) modulo their number

A run of whole days replaces their segments by one, from the table of events. Any other run adds a segment to each day
of its events, which replaces that of the same window. No object is ever changed: a run writes the merged content of a
day's documents, with its change, to a new document after the files that it names, and then deletes the documents that
it has read. So the existing documents have at each moment, together, what all runs have written, whether runs overlap
or are killed; readers (signalbox/history/index) join them. Files of a replaced segment are deleted when no run that
has read an older document, and no reader of it, can still need them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from glue_jobs.shared.arguments import TimeWindow
from glue_jobs.shared.files import delete_path, glob_paths, read_text, write_text
from glue_jobs.shared.lake import Lake
from glue_jobs.transforms.event_ids import index_rows

VERSION = 1
HOUR = timedelta(hours=1)
FILES_KEPT_FOR = 6 * HOUR  # more than the timeout of the job `day`, and than any trace
WRITTEN_AT = "%Y%m%dT%H%M%S"  # the beginning of a segment's name
EVENTS_OF_A_BUCKET, MAX_BUCKETS = 25_000, 4_000
# A lookup reads the footer of a file, which has 0.4 KB for each row group, and one row group.
WRITE_OPTIONS = {
    "compression": "zstd",
    "parquet.compression.codec.zstd.level": "1",
    "parquet.block.size": "196608",  # before compression, which leaves about a sixth
    "parquet.enable.dictionary": "false",  # nearly every value is unique within a row group
    "parquet.statistics.truncate.length": "32",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventIndex:
    """The index at a path, such as s3://<bucket>/index."""

    lake: Lake
    path: str

    def replace_days(self, window: TimeWindow) -> None:
        """Replace the segments of a window's days by the events of the table."""
        # A segment that another run adds from now on has events that may not be in the table as it is read now.
        known = {day: set(self._load(day).segments) for day in window.days}
        events = self.lake.events(window)
        counts = _counts(events)
        for day in window.days:
            made = [self._segment(events, day, counts[day])] if day in counts else []
            self._change_segments(day, made, replacing=known[day])

    def add(self, events: DataFrame, window: TimeWindow) -> None:
        """Add the events that arrived in a window to their days; each `event_id` is in `events` once."""
        name = f"{window.start:%Y-%m-%dT%H:%M}/{window.end:%Y-%m-%dT%H:%M}"
        for day, count in _counts(events).items():
            made = {"window": name, **self._segment(events, day, count)}
            self._change_segments(day, [made], replacing={name})

    def mark_read(self, window: TimeWindow, *, read_at: datetime) -> None:
        """Record that the raw files that existed at `read_at` in the hours that a window overlaps are in the index."""
        first = window.start.replace(minute=0, second=0, microsecond=0)
        moments = [first + HOUR * ahead for ahead in range(ceil((window.end - first) / HOUR))]
        for day in window.days:
            marks = {f"{moment:%H}": _text(read_at) for moment in moments if moment.date() == day}
            if marks:
                known = self._load(day)
                self._save(day, known, replace(known, read_at=_latest(known.read_at, marks)))

    def delete(self, *, before: datetime) -> None:
        """Delete the days before a time's day."""
        for path in glob_paths(self.lake.spark, f"{self.path}/days/*.json"):
            day = path.rpartition("/")[2][: len("YYYY-MM-DD")]
            if day < f"{before:%Y-%m-%d}":
                delete_path(self.lake.spark, path)
                delete_path(self.lake.spark, f"{self.path}/{day}")

    def _segment(self, events: DataFrame, day: date, count: int) -> Document:
        buckets = min(ceil(count / EVENTS_OF_A_BUCKET), MAX_BUCKETS)
        folder = f"{day}/{_new_name()}"
        rows = index_rows(events.where(F.to_date("occurred_at") == F.lit(day)), buckets=buckets)
        arranged = rows.repartition(buckets, "bucket").sortWithinPartitions("bucket", "id")
        arranged.write.options(**WRITE_OPTIONS).partitionBy("bucket").parquet(f"{self.path}/{folder}")
        return {"folder": folder, **_files(glob_paths(self.lake.spark, f"{self.path}/{folder}/bucket=*/*"), buckets)}

    def _load(self, day: date) -> "DayState":
        """Join the documents of a day; if another run deletes one meanwhile, a newer one has its content."""
        while True:
            paths = glob_paths(self.lake.spark, f"{self.path}/days/{day}*.json")
            texts = [text for path in paths if (text := read_text(self.lake.spark, path)) is not None]
            if len(texts) == len(paths):
                return DayState.join(paths, texts)

    def _change_segments(self, day: date, made: list[Document], *, replacing: set[str]) -> None:
        """Replace the segments with these folders or windows."""
        known = self._load(day)
        gone = {name for name, one in known.segments.items() if not replacing.isdisjoint((name, one.get("window")))}
        others = {name: one for name, one in known.segments.items() if name not in gone}
        replaced = _latest(known.replaced, dict.fromkeys(gone, _text(datetime.now(UTC))))
        segments = {**others, **{one["folder"]: one for one in made}}
        self._save(day, known, replace(known, segments=segments, replaced=replaced))

    def _save(self, day: date, known: "DayState", changed: "DayState") -> None:
        """Write a day's new document, and delete the documents that it contains and files that none needs."""
        oldest = datetime.now(UTC) - FILES_KEPT_FOR
        kept = {name: since for name, since in changed.replaced.items() if since > _text(oldest)}
        path = f"{self.path}/days/{day}-{_new_name()}.json"
        write_text(self.lake.spark, path, text=replace(changed, replaced=kept).document())
        for path in known.paths:
            delete_path(self.lake.spark, path)
        needed = {*changed.segments, *kept}
        for path in glob_paths(self.lake.spark, f"{self.path}/{day}/*"):
            name = path.rpartition("/")[2]
            if f"{day}/{name}" not in needed and name < f"{oldest:{WRITTEN_AT}}~":
                delete_path(self.lake.spark, path)


@dataclass(frozen=True, slots=True)
class DayState:
    """The merged content of the documents at `paths`, which are of one day.

    Attributes:
        segments: the segments by folder
        replaced: when a folder was replaced, while runs that began before may name it again
        read_at: when compaction began to read each raw hour of the day

    """

    paths: Sequence[str]
    segments: Mapping[str, Document]
    replaced: Mapping[str, str]
    read_at: Mapping[str, str]

    @classmethod
    def join(cls, paths: Sequence[str], texts: Sequence[str]) -> "DayState":
        """Merge the texts of documents; if one is damaged, events may be missing, so no hour counts as read."""
        documents = [document for text in texts if (document := _parsed(text))]
        replaced = _latest(*(one.get("replaced", {}) for one in documents))
        segments = {one["folder"]: one for document in documents for one in document["segments"]}
        read_at = _latest(*(one["read_at"] for one in documents)) if len(documents) == len(texts) else {}
        return cls(paths, {name: one for name, one in segments.items() if name not in replaced}, replaced, read_at)

    def document(self) -> str:
        """Return the document with this content."""
        made = {"version": VERSION, "segments": [*self.segments.values()], "replaced": self.replaced}
        return json.dumps({**made, "read_at": self.read_at}, separators=(",", ":"))


def whole_hours_of_days(window: TimeWindow) -> TimeWindow:
    """Return the raw hours that a run of whole days reads completely.

    A file of the last hour may also have events of the next day, which such a run does not index.
    """
    return TimeWindow(window.start, window.end - HOUR)


def _counts(events: DataFrame) -> Mapping[date, int]:
    counted = events.groupBy(F.to_date("occurred_at").alias("day")).count().where("day IS NOT NULL")
    return {row["day"]: row["count"] for row in counted.collect()}


def _files(paths: Iterable[str], buckets: int) -> Document:
    """Return the files by bucket, each name without the ending that all have."""
    names = {}
    ending = ""
    for path in paths:
        folder, _, name = path.rpartition("/")
        # Such as part-00007-<uuid>.c000.gz.parquet: the uuid is that of the write.
        task = "-".join(name.split("-")[:2])
        bucket = folder.rpartition("/")[2]
        names[int(bucket.removeprefix("bucket="))] = f"{bucket}/{task}"
        ending = name.removeprefix(task)
    return {"ending": ending, "files": [names.get(number, "") for number in range(buckets)]}


def _latest(*times: Mapping[str, str]) -> dict[str, str]:
    return {name: max(one[name] for one in times if name in one) for name in {name for one in times for name in one}}


def _parsed(text: str) -> Document | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) and document.get("version") == VERSION else None


def _new_name() -> str:
    return f"{datetime.now(UTC):{WRITTEN_AT}}-{uuid4().hex}"


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
