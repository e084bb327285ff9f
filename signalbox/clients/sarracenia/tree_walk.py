"""Looks for what is to be announced: in a tree, once or again and again."""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.posts import Found, Kind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REMOVED = {Kind.DIRECTORY: Kind.REMOVED_DIRECTORY}


class PathNotFound(RejectedError):
    """Raised when what is to be announced is not there, or can be neither announced nor read."""


def found_at(path: str) -> Found | None:
    """Return what is at a path, or None when that is nothing, or nothing that can be announced."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return Found(path, Kind.LINK, target=str(Path(path).readlink()))
    except OSError:  # gone since somebody saw it
        return None
    if stat.S_ISDIR(status.st_mode):
        return Found(path, Kind.DIRECTORY, mode=status.st_mode)
    if not stat.S_ISREG(status.st_mode):  # pipes, sockets and devices have no content that would end
        return None
    return Found(
        path,
        Kind.FILE,
        mode=status.st_mode,
        size_bytes=status.st_size,
        modified_at=_moment(status.st_mtime_ns),
        accessed_at=_moment(status.st_atime_ns),
    )


def _moment(nanoseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def walk(
    paths: Iterable[str], *, recursive: bool, except_for: str | None = None, may_be_missing: bool = False
) -> Iterator[Found]:
    """Yield what is at each path, and with `recursive` what is below it; links are not followed.

    `except_for` is a directory that is not announced itself: the base directory. Raises `PathNotFound`.
    """
    for path in map(absolute, paths):
        found = found_at(path)
        if found is None:
            if may_be_missing:
                continue
            raise PathNotFound(f"{path[:200]!r} is no file, directory or link")
        if path != except_for:
            yield found
        if recursive and found.kind == Kind.DIRECTORY:
            yield from _below(path)


def absolute(path: str) -> str:
    """Return a path from the root on, without `.` and doubled slashes; links in it are not resolved."""
    return os.path.abspath(path)  # noqa: PTH100 - Path.absolute leaves `..` in it


def _below(directory: str) -> Iterator[Found]:
    # A list of what is still to be looked into, not a call for each level: trees may be deeper than calls.
    waiting = [directory]
    while waiting:
        inner = [found for name in _names(waiting.pop()) if (found := found_at(name)) is not None]
        yield from inner
        waiting += [found.path for found in reversed(inner) if found.kind == Kind.DIRECTORY]


def _names(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.path for entry in entries)
    except (FileNotFoundError, NotADirectoryError):  # gone since somebody saw it
        return []
    except OSError as error:
        raise PathNotFound(f"cannot look into {directory[:200]!r}: {error.strerror}") from error


@dataclass(slots=True)
class Watch:
    """Tells what changed from look to look; a file counts once two looks saw the same, so not half-written."""

    announced: dict[str, Found] = field(default_factory=dict)
    seen: dict[str, Found] = field(default_factory=dict)

    def start(self, found: Iterable[Found]) -> None:
        """Take what is there as announced."""
        self.announced = self.seen = _by_path(found)

    def changes(self, found: Iterable[Found]) -> list[Found]:
        """Return what is to be announced: what is gone, from the leaves to the root, then what is new or different."""
        there = _by_path(found)
        gone = [one for one in self.announced.values() if not _is_same_kind(one, there.get(one.path))]
        settled = [
            one
            for path, one in there.items()
            if one != self.announced.get(path) and (one.kind != Kind.FILE or one == self.seen.get(path))
        ]
        self.seen = there
        self.announced = {path: one for path, one in self.announced.items() if one not in gone}
        self.announced.update((one.path, one) for one in settled)
        return [Found(one.path, REMOVED.get(one.kind, Kind.REMOVED)) for one in reversed(gone)] + settled


def _by_path(found: Iterable[Found]) -> dict[str, Found]:
    # That somebody read a file is no change of it.
    return {one.path: replace(one, accessed_at=None) for one in found}


def _is_same_kind(one: Found, other: Found | None) -> bool:
    return other is not None and one.kind == other.kind
