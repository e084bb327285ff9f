"""Applies announcements to a directory: each file appears there whole and verified, or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from signalbox.clients.sarracenia.block_files import BlockAssembly
from signalbox.clients.sarracenia.paths import STAGING_DIRECTORY, destination_of, link_target
from signalbox.clients.sarracenia.sources import SOURCES, ByteRange, Source, fetch, source_url
from signalbox.clients.sarracenia.verification import has_content, verified_chunks
from signalbox.errors import UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement, FileOperation
from signalbox.sarracenia.formats.blocks import Blocks

TIME_TOLERANCE_SECONDS = 0.000_01  # a timestamp of today is exact to half a microsecond as a float
STALE_AFTER = timedelta(days=7)
PERMISSION_BITS = 0o777  # other bits of an announced mode, such as setuid, are ignored


class FileOperationFailed(UnavailableError):
    """Raised when the file system refuses an announced operation; a later attempt may succeed."""


class DownloadOutcome(StrEnum):
    """The result of applying an announcement."""

    DOWNLOADED = "downloaded"
    UNCHANGED = "unchanged"
    LINKED = "linked"
    REMOVED = "removed"
    DIRECTORY = "directory"
    RENAMED = "renamed"
    BLOCK = "block"
    """A block was stored; other blocks of the file are still missing."""


@dataclass(frozen=True, slots=True)
class Downloader:
    """Applies announcements to a directory, and fetches files from `sources`."""

    directory: Path
    sources: Mapping[str, Source] = field(default_factory=lambda: SOURCES)

    def apply(self, announcement: Announcement, *, directory: str | None = None) -> DownloadOutcome:
        """Apply an announcement in `directory`, which is relative to the downloader's own unless it is absolute.

        Raises `UnsafePath` and `UnknownSource`, which are permanent, and `NotFetched`, `NotVerified` and
        `FileOperationFailed`, which a later attempt may avoid.
        """
        root = self.directory / (directory or "")
        try:
            root.mkdir(parents=True, exist_ok=True)
            return _AnnouncedChange(announcement, root, destination_of(announcement.path, root), self.sources).apply()
        except OSError as error:
            reason = error.strerror or error
            raise FileOperationFailed(f"{announcement.path[:200]!r} in {str(root)[:200]!r}: {reason}") from error


@dataclass(frozen=True, slots=True)
class _AnnouncedChange:
    announcement: Announcement
    root: Path
    destination: Path
    sources: Mapping[str, Source]

    def apply(self) -> DownloadOutcome:
        operation = self.announcement.operation or FileOperation()
        if operation.removed:
            return self._remove()
        if operation.link is not None:
            return self._link(operation.link)
        if operation.renamed_from is not None and self._rename(operation.renamed_from):
            return DownloadOutcome.RENAMED
        return self._make_directory() if operation.directory else self._download()

    def _remove(self) -> DownloadOutcome:
        with contextlib.suppress(FileNotFoundError):
            # Check the type here: sr3 3.3.1 announces removed directories as files in v02. A non-empty one stays.
            if self.destination.is_dir() and not self.destination.is_symlink():
                self.destination.rmdir()
            else:
                self.destination.unlink()
        return DownloadOutcome.REMOVED

    def _make_directory(self) -> DownloadOutcome:
        self.destination.mkdir(parents=True, exist_ok=True)
        if not self.destination.is_symlink():
            self._set_mode(self.destination, at_least=0o700)
        return DownloadOutcome.DIRECTORY

    def _link(self, target: str) -> DownloadOutcome:
        safe_target = link_target(target, self.destination, self.root)
        with self._temporary() as temporary:
            temporary.symlink_to(safe_target)
            self._move(temporary)
        return DownloadOutcome.LINKED

    def _rename(self, former: str) -> bool:
        # sr3 3.3.1 announces the absolute path on the publisher's machine; such a file is fetched instead.
        if former.startswith("/"):
            return False
        source = destination_of(former, self.root)
        if not source.exists() and not source.is_symlink():
            return False
        if self.announcement.identity and not has_content(source, self.announcement):
            return False
        self._move(source)
        return True

    def _download(self) -> DownloadOutcome:
        if self.announcement.blocks is not None:
            return self._download_block(self.announcement.blocks)
        if has_content(self.destination, self.announcement):
            return DownloadOutcome.UNCHANGED
        with self._temporary() as temporary:
            self._fetch(temporary, None)
            self._finish(temporary)
        return DownloadOutcome.DOWNLOADED

    def _download_block(self, blocks: Blocks) -> DownloadOutcome:
        assembly = BlockAssembly(self.announcement, blocks, self._staging_directory())
        if self._is_in_place(assembly.byte_range):
            assembly.delete_blocks()
            return DownloadOutcome.UNCHANGED
        with self._temporary() as temporary:
            self._fetch(temporary, assembly.byte_range)
            assembly.add(temporary)
            if not assembly.is_complete():
                return DownloadOutcome.BLOCK
            assembly.write(temporary)
            self._finish(temporary)
        assembly.delete_blocks()
        return DownloadOutcome.DOWNLOADED

    def _is_in_place(self, byte_range: ByteRange) -> bool:
        """Return whether the whole file exists: with the announced time, and the block at its position."""
        modified_at = self.announcement.modified_at
        if modified_at is None or not self.destination.is_file():
            return False
        is_as_old = abs(self.destination.stat().st_mtime - modified_at.timestamp()) < TIME_TOLERANCE_SECONDS
        return is_as_old and has_content(self.destination, self.announcement, byte_range=byte_range)

    def _fetch(self, temporary: Path, byte_range: ByteRange | None) -> None:
        content = self.announcement.content
        chunks = iter((content.octets,)) if content else fetch(source_url(self.announcement), byte_range, self.sources)
        with temporary.open("xb") as file:
            for chunk in verified_chunks(
                chunks, self.announcement, size_bytes=byte_range.size_bytes if byte_range else None
            ):
                file.write(chunk)

    def _finish(self, temporary: Path) -> None:
        self._set_mode(temporary, at_least=0o400)
        if self.announcement.modified_at is not None:
            moment = self.announcement.modified_at.timestamp()
            os.utime(temporary, (moment, moment))
        self._move(temporary)

    def _set_mode(self, path: Path, *, at_least: int) -> None:
        with contextlib.suppress(ValueError):  # a message may contain any text
            path.chmod(int(self.announcement.mode or "", 8) & PERMISSION_BITS | at_least)

    def _move(self, temporary: Path) -> None:
        self.destination.parent.mkdir(parents=True, exist_ok=True)
        destination_of(self.announcement.path, self.root)  # again: other processes write here, too
        temporary.replace(self.destination)

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[Path]:
        path = self._staging_directory() / secrets.token_hex(12)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _staging_directory(self) -> Path:
        own = self.root / STAGING_DIRECTORY
        own.mkdir(exist_ok=True)
        return own


def delete_stale_files(directory: Path, *, now: datetime) -> int:
    """Delete incomplete files that interrupted downloads left more than 7 days ago; return their number."""
    count = 0
    for path in (directory / STAGING_DIRECTORY).glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another instance deletes them at the same time
            if path.stat().st_mtime < (now - STALE_AFTER).timestamp():
                path.unlink()
                count += 1
    return count
