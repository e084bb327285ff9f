"""Announcements: the content of a message about a file, independent of its format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.blocks import Blocks
from signalbox.sarracenia.formats.content import Content
from signalbox.sarracenia.formats.identity import Identity


class InvalidAnnouncement(RejectedError):
    """Raised when a message is not a valid v02 or v03 announcement; each problem has its line."""


@dataclass(frozen=True, slots=True)
class FileOperation:
    """An operation on a path other than writing a file."""

    link: str | None = None
    removed: bool = False
    directory: bool = False
    renamed_from: str | None = None


@dataclass(frozen=True, slots=True)
class Announcement:
    """A file that can be fetched, or another change of a tree of files."""

    published_at: datetime
    base_url: str
    path: str
    source: str | None = None
    size_bytes: int | None = None
    identity: Identity | None = None
    blocks: Blocks | None = None
    content: Content | None = None
    operation: FileOperation | None = None
    modified_at: datetime | None = None
    accessed_at: datetime | None = None
    mode: str | None = None
    content_type: str | None = None
    retrieve_path: str | None = None
    # Unknown fields of the publisher, which are passed on unchanged.
    others: Mapping[str, object] = field(default_factory=dict)
