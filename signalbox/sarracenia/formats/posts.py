"""Messages that announce files, equal to those that `sr3_post` sends for the same files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.announcement import Announcement, FileOperation
from signalbox.sarracenia.formats.blocks import Block, file_in_blocks
from signalbox.sarracenia.formats.content import Content
from signalbox.sarracenia.formats.identity import CHECKSUMS, COMPUTE_ON_DOWNLOAD, RANDOM, Identity, IdentityMethod
from signalbox.sarracenia.formats.payloads import Format, payload
from signalbox.sarracenia.formats.topics import V02_PREFIX, V03_PREFIX, topic_of
from signalbox.sarracenia.rights.names import ExchangeName

DIRECTORY_TYPE = "text/directory"  # RFC 2425, as sr3 writes it
FILE_SCHEME = "file:"
PREFIXES = {Format.V02: V02_PREFIX, Format.V03: V03_PREFIX}


class NotBelowBaseDirectory(RejectedError):
    """Raised when a file is not below the base directory, so that no URL leads to it."""


class InvalidPostSettings(RejectedError):
    """Raised when the settings for announcing files contradict each other; each problem has its line."""


class FileKind(StrEnum):
    """The kind of an announced path."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    REMOVED = "removed"
    REMOVED_DIRECTORY = "removed directory"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A path with its status; for removed paths and links only `path`, `kind` and `target` are set."""

    path: str
    """Absolute, with slashes."""
    kind: FileKind
    mode: int | None = None
    size_bytes: int | None = None
    modified_at: datetime | None = None
    accessed_at: datetime | None = None
    target: str | None = None
    """The target of a link, unresolved."""


@dataclass(frozen=True, slots=True)
class FileContents:
    """The data read from a file: identity, blocks and embedded content."""

    identity: Identity | None = None
    blocks: tuple[Block, ...] = ()
    content: Content | None = None


NO_CONTENTS = FileContents()


@dataclass(frozen=True, slots=True)
class AnnouncementMessage:
    """A message that announces a file, with its exchange and routing key."""

    exchange: ExchangeName
    routing_key: str
    body: str
    headers: Mapping[str, str]

    def as_document(self) -> dict[str, object]:
        """Return the message as a JSON object."""
        return {
            "exchange": self.exchange,
            "routing_key": self.routing_key,
            "headers": dict(self.headers),
            "body": self.body,
        }


@dataclass(frozen=True, slots=True)
class PostSettings:
    """Settings for announcing files, and the messages that follow from them. Raises `InvalidPostSettings`."""

    exchange: ExchangeName
    base_url: str
    base_directory: str | None = None
    """The absolute directory that the base URL serves; announced paths are relative to it."""
    form: Format = Format.V03
    topic_prefix: str | None = None
    method: IdentityMethod = field(default_factory=IdentityMethod)
    source: str | None = None
    block_bytes: int | None = None
    """Files larger than this are announced in blocks of this size; None for never."""
    content_limit_bytes: int | None = None
    """Contents smaller than this are embedded; None for never."""

    def __post_init__(self) -> None:
        problems = []
        if not _is_url(self.base_url):
            problems.append(f"base URL {self.base_url[:200]!r}: expected a URL such as https://data.example.com/")
        if self.block_bytes is not None and self.method.name not in CHECKSUMS:
            problems.append(f"identity {self.method.name!r}: blocks need {' or '.join(CHECKSUMS)}")
        if self.content_limit_bytes is not None and self.form == Format.V02:
            problems.append("v02 has no embedded content, in sr3 either")
        if problems:
            raise InvalidPostSettings("\n".join(problems))

    @property
    def root(self) -> str | None:
        """Return the directory that the base URL serves, or None for the root of the file system."""
        if self.base_directory is not None:
            return self.base_directory
        # As in sr3, a `file:` URL contains the directory.
        return urlsplit(self.base_url).path if self.base_url.startswith(FILE_SCHEME) else None

    def path_of(self, path: str) -> str:
        """Return the announced path, relative to the base URL. Raises `NotBelowBaseDirectory`."""
        if self.root is None:
            return path.lstrip("/")
        rest = _below(path, self.root)
        if rest is None:
            raise NotBelowBaseDirectory(f"{path[:200]!r} is not below the base directory {self.root[:200]!r}")
        if self.base_directory is None:
            return rest
        # As in sr3, the path of the base URL is not repeated.
        return _below(f"/{rest}", urlsplit(self.base_url).path) or rest

    def announcements(
        self, entry: FileEntry, contents: FileContents = NO_CONTENTS, *, now: datetime, random: int
    ) -> Iterator[Announcement]:
        """Yield the announcement of a path, or one for each block; `random` is an integer from 0 to 9999."""
        whole = Announcement(
            published_at=now,
            base_url=self.base_url,
            path=self.path_of(entry.path),
            source=self.source,
            size_bytes=entry.size_bytes if entry.kind == FileKind.FILE else None,
            identity=contents.identity or self._unread_identity(random),
            content=contents.content,
            operation=_operation(entry),
            modified_at=entry.modified_at if entry.kind == FileKind.FILE else None,
            accessed_at=entry.accessed_at if entry.kind == FileKind.FILE else None,
            mode=None if entry.mode is None else f"{entry.mode & 0o7777:o}",
            content_type=DIRECTORY_TYPE if entry.kind == FileKind.DIRECTORY else None,
        )
        if not contents.blocks:
            yield whole
            return
        method = self.method.name
        for block, blocks in zip(contents.blocks, file_in_blocks(contents.blocks), strict=True):
            identity = Identity(method, block.identity)
            yield replace(whole, size_bytes=block.size_bytes, identity=identity, blocks=blocks)

    def _unread_identity(self, random: int) -> Identity | None:
        # sr3 gives these to links and directories too, but `arbitrary` only to files that it opens.
        return self.method.identity((), random=random) if self.method.name in (COMPUTE_ON_DOWNLOAD, RANDOM) else None

    def message(self, announcement: Announcement) -> AnnouncementMessage:
        """Return the message of an announcement. Raises `InvalidTopic`."""
        prefix = PREFIXES[self.form] if self.topic_prefix is None else self.topic_prefix
        serialized = payload(announcement, self.form)
        headers = {name: str(value) for name, value in serialized.headers.items()}
        return AnnouncementMessage(self.exchange, topic_of(announcement.path, prefix=prefix), serialized.body, headers)


def _is_url(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:  # such as half of an address in brackets
        return False


def _below(path: str, directory: str) -> str | None:
    start = f"{directory.rstrip('/')}/"
    return path[len(start) :] if path.startswith(start) else None


def _operation(entry: FileEntry) -> FileOperation | None:
    match entry.kind:
        case FileKind.FILE:
            return None
        case FileKind.LINK:
            return FileOperation(link=entry.target or "")
        case FileKind.DIRECTORY:
            return FileOperation(directory=True)
        case _:
            return FileOperation(removed=True, directory=entry.kind == FileKind.REMOVED_DIRECTORY)
