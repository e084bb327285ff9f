"""Duplicate detection: the key that duplicates share, and how long it is kept."""

import json
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.identity import COMPUTE_ON_DOWNLOAD
from signalbox.sarracenia.formats.times import v03_time

DATA = "data"


class Basis(StrEnum):
    """The properties that are compared, as in sr3's `nodupe_basis`."""

    PATH = "path"
    """The same content at the same path."""
    DATA = "data"
    """The same content at any path."""
    NAME = "name"
    """The same content in a file of the same name in any directory."""
    NAME_ONLY = "name_only"
    """The same file name with any content."""
    PATH_ONLY = "path_only"
    """The same path with any content."""


class DuplicateCache(Protocol):
    """Stores the time at which each announcement was last seen."""

    def last_seen(self, key: str) -> datetime | None:
        """Return the time at which a key was last recorded, or None."""
        ...

    def record(self, key: str, *, now: datetime) -> None:
        """Record that a key was seen at `now`."""
        ...


def duplicate_key(announcement: Announcement, basis: Basis = Basis.PATH) -> str:
    """Return the key of an announcement; announcements with equal keys are duplicates."""
    path = _path(announcement, basis)
    if basis == Basis.NAME_ONLY:
        return _key(path, path)
    if basis == Basis.PATH_ONLY:
        return _key(announcement.path, path)
    # The key includes the block number: sr3 3.3.1 drops blocks with equal bytes, so the file is never complete.
    block = [] if announcement.blocks is None else [str(announcement.blocks.number)]
    content = _content(announcement, path if basis in (Basis.DATA, Basis.NAME) else announcement.path)
    return _key(content, path, *block)


def _key(*parts: str) -> str:
    return json.dumps(parts)  # unambiguous: different lists give different texts


def _path(announcement: Announcement, basis: Basis) -> str:
    if basis == Basis.DATA:
        return DATA
    name = announcement.path.rpartition("/")[2]
    return name if basis in (Basis.NAME, Basis.NAME_ONLY) else announcement.path.lstrip("/")


def _content(announcement: Announcement, path: str) -> str:
    """Return the identity of the content by sr3's rules: link target, directory, checksum, or time and size."""
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
    """Return whether a key was last seen within `ttl`; recording each hit extends the time by `ttl`, as sr3 does."""
    return seen_at is not None and seen_at + ttl >= now
