"""Duplicates: what makes two announcements the same, and for how long."""

import json
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.identity import COMPUTE_ON_DOWNLOAD
from signalbox.sarracenia.formats.times import v03_time

DATA = "data"


class Basis(StrEnum):
    """What is compared, as sr3's `nodupe_basis` has it."""

    PATH = "path"
    """The same content at the same path."""
    DATA = "data"
    """The same content, wherever."""
    NAME = "name"
    """The same content in a file of the same name, in whatever directory."""
    NAME_ONLY = "name_only"
    """A file of the same name, whatever its content."""
    PATH_ONLY = "path_only"
    """The same path, whatever its content."""


class Memory(Protocol):
    """Remembers when announcements were last seen."""

    def last_seen(self, key: str) -> datetime | None:
        """Return when a key was last seen, or None if never."""
        ...

    def see(self, key: str, *, now: datetime) -> None:
        """Remember that a key is seen now."""
        ...


def duplicate_key(announcement: Announcement, basis: Basis = Basis.PATH) -> str:
    """Return what two announcements have in common if one is a duplicate of the other."""
    path = _path(announcement, basis)
    if basis == Basis.NAME_ONLY:
        return _key(path, path)
    if basis == Basis.PATH_ONLY:
        return _key(announcement.path, path)
    # sr3 3.3.1 takes two blocks of the same bytes for duplicates, and never has the whole file.
    block = [] if announcement.blocks is None else [str(announcement.blocks.number)]
    content = _content(announcement, path if basis in (Basis.DATA, Basis.NAME) else announcement.path)
    return _key(content, path, *block)


def _key(*parts: str) -> str:
    return json.dumps(parts)  # no two lists of texts have the same


def _path(announcement: Announcement, basis: Basis) -> str:
    if basis == Basis.DATA:
        return DATA
    name = announcement.path.rpartition("/")[2]
    return name if basis in (Basis.NAME, Basis.NAME_ONLY) else announcement.path.lstrip("/")


def _content(announcement: Announcement, path: str) -> str:
    """Return what stands for the content, by sr3's rules: what was done to a path, a checksum, or size and time."""
    operation, identity = announcement.operation, announcement.identity
    if operation is not None and operation.link:
        return operation.link
    if operation is not None and operation.directory and not operation.removed and operation.link is None:
        return announcement.path
    if operation is None and identity is not None and identity.method != COMPUTE_ON_DOWNLOAD:
        return f"{identity.method},{identity.value}"
    moment = v03_time(announcement.modified_at or announcement.published_at)
    size = "" if announcement.size_bytes is None else f",{announcement.size_bytes}"
    return f"{path},{moment}{size}"


def is_duplicate(seen_at: datetime | None, *, now: datetime, ttl: timedelta) -> bool:
    """Say whether what was seen at a moment is still remembered; each time it is seen, it is for as long again."""
    return seen_at is not None and seen_at + ttl >= now
