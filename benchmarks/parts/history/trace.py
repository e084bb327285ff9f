"""Lookups of events by id, in the index of one day and in its raw files, with the bytes that they read."""

import io
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from pyarrow.parquet import ParquetFile

from benchmarks.parts.history import spark as history_spark
from benchmarks.parts.history.tables import Say, raw_events, scratch_folder
from benchmarks.shared.figures import Summary, summary
from benchmarks.shared.processes import Measured
from signalbox.aws.history.event_lookup import S3EventLookup
from signalbox.history.index.days import DAYS_PREFIX
from signalbox.history.lookup import EventWindow

DAY = datetime(2026, 11, 18, tzinfo=UTC)  # the first of the generator
LOOKUPS, RAW_LOOKUPS = 200, 3


@dataclass(frozen=True, slots=True)
class Lookups:
    """The bytes, requests and milliseconds of lookups of one id each, by a new reader each."""

    name: str
    bytes: Summary
    requests: Summary
    milliseconds: Summary


@dataclass(frozen=True, slots=True)
class Traced:
    """A day of events: the sizes of its raw files and its index, two runs of compaction, and the lookups."""

    events: int
    raw_bytes: int
    index_bytes: int
    without_index: Measured
    with_index: Measured
    lookups: Sequence[Lookups]


def measure(events: int, say: Say) -> Traced:
    """Compact a day of events without and with the index, and look ids up."""
    raw = raw_events(events, say, days=1) / "parquet"
    with scratch_folder(f"trace-{events}") as folder:
        say(f"{events:,} events: compaction without the index")
        alone = history_spark.compact(raw, folder / "alone", day=f"{DAY:%Y-%m-%d}")
        shutil.rmtree(folder / "alone")
        say(f"{events:,} events: compaction with the index")
        indexed = history_spark.compact(raw, folder / "both", day=f"{DAY:%Y-%m-%d}", index=folder / "index")
        (folder / "raw").symlink_to(raw)
        say("lookups")
        return Traced(events, _size(raw), _size(folder / "index"), alone, indexed, list(_lookups(folder)))


def _lookups(folder: Path) -> Iterator[Lookups]:
    ids = list(_ids(folder, LOOKUPS))
    window = EventWindow(DAY, DAY + timedelta(days=1))
    after = DAY + timedelta(hours=23, minutes=-1)  # the day's last hour is read with the next day
    yield _looked_up("ids of the day, by the index", folder, ids, window, now=after)
    unknown = [f"m{number:016x}" for number in range(LOOKUPS)]
    yield _looked_up("ids that the day does not have", folder, unknown, window, now=after)
    shutil.rmtree(folder / DAYS_PREFIX)
    for hours in (1, 7):
        start = DAY + timedelta(hours=12)
        recent = EventWindow(start, start + timedelta(hours=hours, minutes=-1))
        name = f"{hours} h of raw files without an index"
        yield _looked_up(name, folder, ids[:RAW_LOOKUPS], recent, now=recent.end)


def _looked_up(name: str, folder: Path, ids: Sequence[str], window: EventWindow, *, now: datetime) -> Lookups:
    usages, times = [], []
    for id_ in ids:
        lookup = S3EventLookup(FolderS3(folder), "bucket", now)  # type: ignore[arg-type]  # has the methods it calls
        began = time.perf_counter()
        lookup.events({id_}, window)
        times.append((time.perf_counter() - began) * 1000)
        usages.append(lookup.usage)
    found = (summary(values) for values in ([u.bytes for u in usages], [u.requests for u in usages], times))
    return Lookups(name, *found)  # type: ignore[arg-type]  # never empty


def _ids(folder: Path, count: int) -> Iterator[str]:
    """Yield ids of the index, always the same for the same files."""
    choice = random.Random(1)
    files = sorted((folder / "index").glob("*/*/bucket=*/*.parquet"), key=lambda path: path.parent.name)
    for _ in range(count):
        file = ParquetFile(choice.choice(files))
        rows = file.read_row_group(choice.randrange(file.metadata.num_row_groups), columns=["id"])
        yield choice.choice(rows.column("id").to_pylist())


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True, slots=True)
class FolderS3:
    """The calls of S3 that lookups make, for a folder; the files have the times of a complete day."""

    folder: Path

    def get_object(self, *, Bucket: str, Key: str, Range: str = "") -> dict[str, Any]:  # noqa: N803, ARG002 - S3's names
        """Return an object or a part of it."""
        path = self.folder / Key
        if not path.is_file():
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": Key}}, "GetObject")
        size = path.stat().st_size
        first, _, last = Range.removeprefix("bytes=").partition("-")
        start, end = (int(first), int(last) + 1) if first else (max(0, size - int(last or size)), size)
        with path.open("rb") as file:
            file.seek(start)
            return {"Body": io.BytesIO(file.read(end - start)), "ContentRange": f"bytes {start}-{end - 1}/{size}"}

    def get_paginator(self, _name: str) -> "FolderS3":
        """Return the paginator of `list_objects_v2`."""
        return self

    def paginate(self, *, Bucket: str, Prefix: str, StartAfter: str) -> Iterator[dict[str, Any]]:  # noqa: N803, ARG002
        """Yield one page of objects."""
        paths = sorted(path for path in (self.folder / Prefix).rglob("*") if path.is_file())
        keys = [f"{path.relative_to(self.folder)}" for path in paths]
        yield {"Contents": [{"Key": key, "LastModified": DAY} for key in keys if key > StartAfter]}
