"""Does to a directory what announcements tell: each file is there whole and verified, or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from signalbox.clients.sarracenia.block_files import Assembly
from signalbox.clients.sarracenia.paths import OWN_DIRECTORY, link_target, place_of
from signalbox.clients.sarracenia.sources import SOURCES, Part, Source, fetched, source_url
from signalbox.clients.sarracenia.verification import has_content, verified
from signalbox.errors import UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement, FileOperation
from signalbox.sarracenia.formats.blocks import Blocks

SAME_SECONDS = 0.000_01  # a float of our time is exact to half a microsecond
LEFT_BEHIND = timedelta(days=7)
PERMISSIONS = 0o777  # what else a mode says, such as setuid, nobody gets by a message


class NotDone(UnavailableError):
    """Raised when a file system does not do what an announcement tells; it may the next time."""


class Done(StrEnum):
    """What was done."""

    DOWNLOADED = "downloaded"
    UNCHANGED = "unchanged"
    LINKED = "linked"
    REMOVED = "removed"
    DIRECTORY = "directory"
    RENAMED = "renamed"
    BLOCK = "block"
    """A part of a file, of which others are still missing."""


@dataclass(frozen=True, slots=True)
class Downloader:
    """Keeps directories as announcements tell."""

    directory: Path
    sources: Mapping[str, Source] = field(default_factory=lambda: SOURCES)

    def carry_out(self, announcement: Announcement, *, directory: str | None = None) -> Done:
        """Do what an announcement tells, in `directory` (below the downloader's own unless it is absolute).

        Raises `UnsafePath` and `UnknownSource`, and of what may work the next time, `NotFetched`, `NotVerified` and
        `NotDone`.
        """
        root = self.directory / (directory or "")
        try:
            root.mkdir(parents=True, exist_ok=True)
            return _Work(announcement, root, place_of(announcement.path, root), self.sources).done()
        except OSError as error:
            reason = error.strerror or error
            raise NotDone(f"{announcement.path[:200]!r} in {str(root)[:200]!r}: {reason}") from error


@dataclass(frozen=True, slots=True)
class _Work:
    announcement: Announcement
    root: Path
    place: Path
    sources: Mapping[str, Source]

    def done(self) -> Done:
        operation = self.announcement.operation or FileOperation()
        if operation.removed:
            return self._remove()
        if operation.link is not None:
            return self._link(operation.link)
        if operation.renamed_from is not None and self._rename(operation.renamed_from):
            return Done.RENAMED
        return self._make_directory() if operation.directory else self._download()

    def _remove(self) -> Done:
        with contextlib.suppress(FileNotFoundError):
            # Not as told: v02 of sr3 3.3.1 does not tell a directory from a file. One that holds something stays.
            if self.place.is_dir() and not self.place.is_symlink():
                self.place.rmdir()
            else:
                self.place.unlink()
        return Done.REMOVED

    def _make_directory(self) -> Done:
        self.place.mkdir(parents=True, exist_ok=True)
        if not self.place.is_symlink():
            self._set_mode(self.place, at_least=0o700)
        return Done.DIRECTORY

    def _link(self, target: str) -> Done:
        told = link_target(target, self.place, self.root)
        with self._temporary() as temporary:
            temporary.symlink_to(told)
            self._move(temporary)
        return Done.LINKED

    def _rename(self, former: str) -> bool:
        # sr3 3.3.1 tells where the file was on the publisher's machine; what is not in the tree is fetched instead.
        if former.startswith("/"):
            return False
        source = place_of(former, self.root)
        if not source.exists() and not source.is_symlink():
            return False
        if self.announcement.identity and not has_content(source, self.announcement):
            return False
        self._move(source)
        return True

    def _download(self) -> Done:
        if self.announcement.blocks is not None:
            return self._download_block(self.announcement.blocks)
        if has_content(self.place, self.announcement):
            return Done.UNCHANGED
        with self._temporary() as temporary:
            self._fetch(temporary, None)
            self._finish(temporary)
        return Done.DOWNLOADED

    def _download_block(self, blocks: Blocks) -> Done:
        assembly = Assembly(self.announcement, blocks, self._own_directory())
        if self._is_in_place(assembly.part):
            assembly.forget()
            return Done.UNCHANGED
        with self._temporary() as temporary:
            self._fetch(temporary, assembly.part)
            assembly.keep(temporary)
            if not assembly.is_complete():
                return Done.BLOCK
            assembly.write(temporary)
            self._finish(temporary)
        assembly.forget()
        return Done.DOWNLOADED

    def _is_in_place(self, part: Part) -> bool:
        """Say whether the whole file is there: as old as announced, with the block where it belongs."""
        modified_at = self.announcement.modified_at
        if modified_at is None or not self.place.is_file():
            return False
        is_as_old = abs(self.place.stat().st_mtime - modified_at.timestamp()) < SAME_SECONDS
        return is_as_old and has_content(self.place, self.announcement, part=part)

    def _fetch(self, temporary: Path, part: Part | None) -> None:
        content = self.announcement.content
        chunks = iter((content.octets,)) if content else fetched(source_url(self.announcement), part, self.sources)
        with temporary.open("xb") as file:
            for chunk in verified(chunks, self.announcement, size_bytes=part.size_bytes if part else None):
                file.write(chunk)

    def _finish(self, temporary: Path) -> None:
        self._set_mode(temporary, at_least=0o400)
        if self.announcement.modified_at is not None:
            moment = self.announcement.modified_at.timestamp()
            os.utime(temporary, (moment, moment))
        self._move(temporary)

    def _set_mode(self, path: Path, *, at_least: int) -> None:
        with contextlib.suppress(ValueError):  # whatever a message says
            path.chmod(int(self.announcement.mode or "", 8) & PERMISSIONS | at_least)

    def _move(self, temporary: Path) -> None:
        self.place.parent.mkdir(parents=True, exist_ok=True)
        place_of(self.announcement.path, self.root)  # again: others write here, too
        temporary.replace(self.place)

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[Path]:
        path = self._own_directory() / secrets.token_hex(12)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _own_directory(self) -> Path:
        own = self.root / OWN_DIRECTORY
        own.mkdir(exist_ok=True)
        return own


def swept(directory: Path, *, now: datetime) -> int:
    """Remove what interrupted downloads left in a directory long ago; return how many files that were."""
    count = 0
    for path in (directory / OWN_DIRECTORY).glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another instance sweeps, too
            if path.stat().st_mtime < (now - LEFT_BEHIND).timestamp():
                path.unlink()
                count += 1
    return count
