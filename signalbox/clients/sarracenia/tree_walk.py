"""Finds files to announce: walks trees, and compares one walk with the next."""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.posts import FileEntry, FileKind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REMOVED = {FileKind.DIRECTORY: FileKind.REMOVED_DIRECTORY}


class PathNotFound(RejectedError):
    """Raised when a path does not exist, is not a file, directory or link, or is an unreadable directory."""


def entry_at(path: str) -> FileEntry | None:
    """Return the entry at a path, or None when the path is missing or of a kind that cannot be announced."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return FileEntry(path, FileKind.LINK, target=str(Path(path).readlink()))
    except OSError:  # removed since it was listed
        return None
    if stat.S_ISDIR(status.st_mode):
        return FileEntry(path, FileKind.DIRECTORY, mode=status.st_mode)
    if not stat.S_ISREG(status.st_mode):  # the content of pipes, sockets and devices has no end
        return None
    return FileEntry(
        path,
        FileKind.FILE,
        mode=status.st_mode,
        size_bytes=status.st_size,
        modified_at=_moment(status.st_mtime_ns),
        accessed_at=_moment(status.st_atime_ns),
    )


def _moment(nanoseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def walk(
    paths: Iterable[str], *, recursive: bool, except_for: str | None = None, may_be_missing: bool = False
) -> Iterator[FileEntry]:
    """Yield the entry at each path, and with `recursive` all entries below it; links are not followed.

    The directory `except_for`, the base directory, is itself left out. Raises `PathNotFound`.
    """
    for path in map(absolute, paths):
        entry = entry_at(path)
        if entry is None:
            if may_be_missing:
                continue
            raise PathNotFound(f"{path[:200]!r} is not a file, directory or link")
        if path != except_for:
            yield entry
        if recursive and entry.kind == FileKind.DIRECTORY:
            yield from _below(path)


def absolute(path: str) -> str:
    """Return an absolute path without `.`, `..` and repeated slashes; links in it are not resolved."""
    return os.path.abspath(path)  # noqa: PTH100 - Path.absolute leaves `..` in it


def _below(directory: str) -> Iterator[FileEntry]:
    # A list of pending directories instead of recursion: trees may be deeper than the call stack.
    waiting = [directory]
    while waiting:
        inner = [entry for name in _names(waiting.pop()) if (entry := entry_at(name)) is not None]
        yield from inner
        waiting += [entry.path for entry in reversed(inner) if entry.kind == FileKind.DIRECTORY]


def _names(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(one.path for one in entries)
    except (FileNotFoundError, NotADirectoryError):  # removed since it was listed
        return []
    except OSError as error:
        raise PathNotFound(f"cannot list {directory[:200]!r}: {error.strerror}") from error


@dataclass(slots=True)
class TreeWatch:
    """Detects changes between walks of a tree.

    A file is reported when two consecutive walks found it the same, so that half-written files are not announced.
    """

    announced: dict[str, FileEntry] = field(default_factory=dict)
    seen: dict[str, FileEntry] = field(default_factory=dict)

    def start(self, entries: Iterable[FileEntry]) -> None:
        """Take all entries of a first walk as announced."""
        self.announced = self.seen = _by_path(entries)

    def changes(self, entries: Iterable[FileEntry]) -> list[FileEntry]:
        """Return the entries to announce: removed ones from the leaves to the root, then new and changed ones."""
        current = _by_path(entries)
        gone = [one for one in self.announced.values() if not _is_same_kind(one, current.get(one.path))]
        settled = [
            one
            for path, one in current.items()
            if one != self.announced.get(path) and (one.kind != FileKind.FILE or one == self.seen.get(path))
        ]
        self.seen = current
        self.announced = {path: one for path, one in self.announced.items() if one not in gone}
        self.announced.update((one.path, one) for one in settled)
        return [FileEntry(one.path, REMOVED.get(one.kind, FileKind.REMOVED)) for one in reversed(gone)] + settled


def _by_path(entries: Iterable[FileEntry]) -> dict[str, FileEntry]:
    # Reading a file does not change it.
    return {one.path: replace(one, accessed_at=None) for one in entries}


def _is_same_kind(one: FileEntry, other: FileEntry | None) -> bool:
    return other is not None and one.kind == other.kind
