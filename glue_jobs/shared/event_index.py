"""The index of events by id, which compaction writes for `signalbox trace`.

<index_path>/days/YYYY-MM-DD.json         the document of a day: its segments, and the raw hours that have been read
<index_path>/YYYY-MM-DD/<segment>/bucket=<number>/part-…
                                          Parquet files of a segment with the columns `id` and `event`, sorted by id, in
                                          small row groups; an id is in the bucket crc32(id) modulo their number

A run of whole days replaces their segments by one, from the table of events. Any other run adds a segment to each day
of its events, which replaces that of the same window. Documents are replaced as a whole, after the files that they
name, so readers (signalbox/history/index) see either the old or the new state. Runs of the hourly and of the daily job
may overlap: a document is read again just before it is changed, and files that it does not name are deleted only when
no run that wrote them, and no reader of a replaced document, can still need them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
        known = {day: {segment["folder"] for segment in self._load(day)["segments"]} for day in window.days}
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
                document = self._load(day)
                self._save(day, {**document, "read_at": {**document["read_at"], **marks}})

    def delete(self, *, before: datetime) -> None:
        """Delete the days before a time's day."""
        for path in glob_paths(self.lake.spark, f"{self.path}/days/*.json"):
            day = path.rpartition("/")[2].removesuffix(".json")
            if day < f"{before:%Y-%m-%d}":
                delete_path(self.lake.spark, path)
                delete_path(self.lake.spark, f"{self.path}/{day}")

    def _segment(self, events: DataFrame, day: date, count: int) -> Document:
        buckets = min(ceil(count / EVENTS_OF_A_BUCKET), MAX_BUCKETS)
        folder = f"{day}/{datetime.now(UTC):{WRITTEN_AT}}-{uuid4().hex}"
        rows = index_rows(events.where(F.to_date("occurred_at") == F.lit(day)), buckets=buckets)
        arranged = rows.repartition(buckets, "bucket").sortWithinPartitions("bucket", "id")
        arranged.write.options(**WRITE_OPTIONS).partitionBy("bucket").parquet(f"{self.path}/{folder}")
        return {"folder": folder, **_files(glob_paths(self.lake.spark, f"{self.path}/{folder}/bucket=*/*"), buckets)}

    def _load(self, day: date) -> Document:
        text = read_text(self.lake.spark, self._document(day))
        return {"version": VERSION, "segments": [], "read_at": {}} if text is None else json.loads(text)

    def _change_segments(self, day: date, made: list[Document], *, replacing: set[str]) -> None:
        """Replace the segments with these folders or windows."""
        document = self._load(day)
        others = [one for one in document["segments"] if replacing.isdisjoint((one["folder"], one.get("window")))]
        self._save(day, {**document, "segments": [*others, *made]})

    def _save(self, day: date, document: Document) -> None:
        write_text(self.lake.spark, self._document(day), text=json.dumps(document, separators=(",", ":")))
        used = {segment["folder"] for segment in document["segments"]}
        newest = f"{datetime.now(UTC) - FILES_KEPT_FOR:{WRITTEN_AT}}~"
        for path in glob_paths(self.lake.spark, f"{self.path}/{day}/*"):
            name = path.rpartition("/")[2]
            if f"{day}/{name}" not in used and name < newest:
                delete_path(self.lake.spark, path)

    def _document(self, day: date) -> str:
        return f"{self.path}/days/{day}.json"


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


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
