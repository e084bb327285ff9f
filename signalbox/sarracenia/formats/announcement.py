"""What a message says of a file, whatever format it came in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.blocks import Blocks
from signalbox.sarracenia.formats.content import Content
from signalbox.sarracenia.formats.identity import Identity


class InvalidAnnouncement(RejectedError):
    """Raised when a message announces no file in any of Sarracenia's formats; each problem has its line."""


@dataclass(frozen=True, slots=True)
class FileOperation:
    """What happened to a path other than that a file was written there."""

    link: str | None = None
    removed: bool = False
    directory: bool = False
    renamed_from: str | None = None


@dataclass(frozen=True, slots=True)
class Announcement:
    """A file that is there to be fetched, or another change of a tree of files."""

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
    # What others put into their messages is carried on.
    others: Mapping[str, object] = field(default_factory=dict)
