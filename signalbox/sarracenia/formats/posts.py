"""What is announced of files: the messages that sr3's `sr3_post` sends of the same ones."""

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
    """Raised when a file has no path below the base directory, so that no URL leads to it."""


class InvalidPosting(RejectedError):
    """Raised when files cannot be announced as somebody asked for; each problem has its line."""


class Kind(StrEnum):
    """What is announced of a path."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    REMOVED = "removed"
    REMOVED_DIRECTORY = "removed directory"


@dataclass(frozen=True, slots=True)
class Found:
    """A path as it is there, or no more; of what is gone, and of links, nothing else is told."""

    path: str
    """Absolute, with slashes."""
    kind: Kind
    mode: int | None = None
    size_bytes: int | None = None
    modified_at: datetime | None = None
    accessed_at: datetime | None = None
    target: str | None = None
    """Where a link leads, as it says itself."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What was read of a file."""

    identity: Identity | None = None
    blocks: tuple[Block, ...] = ()
    content: Content | None = None


NOTHING_READ = Contents()


@dataclass(frozen=True, slots=True)
class Post:
    """A message that announces a file, and where it is sent."""

    exchange: ExchangeName
    routing_key: str
    body: str
    headers: Mapping[str, str]

    def as_document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "exchange": self.exchange,
            "routing_key": self.routing_key,
            "headers": dict(self.headers),
            "body": self.body,
        }


@dataclass(frozen=True, slots=True)
class Posting:
    """How files are announced. Raises `InvalidPosting`."""

    exchange: ExchangeName
    base_url: str
    base_directory: str | None = None
    """Absolute; what of a path is not told, because the base URL leads there."""
    form: Format = Format.V03
    topic_prefix: str | None = None
    method: IdentityMethod = field(default_factory=IdentityMethod)
    source: str | None = None
    block_bytes: int | None = None
    """Larger files are announced in blocks of this size; None for never."""
    content_limit_bytes: int | None = None
    """Smaller contents are sent along; None for never."""

    def __post_init__(self) -> None:
        problems = []
        if not _is_url(self.base_url):
            problems.append(f"base URL {self.base_url[:200]!r}: expected such as https://data.example.com/")
        if self.block_bytes is not None and self.method.name not in CHECKSUMS:
            problems.append(f"identity {self.method.name!r}: blocks are told apart by {' or '.join(CHECKSUMS)}")
        if self.content_limit_bytes is not None and self.form == Format.V02:
            problems.append("no content travels in v02; sr3 does not send any either")
        if problems:
            raise InvalidPosting("\n".join(problems))

    @property
    def root(self) -> str | None:
        """Return the directory to which the base URL leads, or None if that is everything."""
        if self.base_directory is not None:
            return self.base_directory
        # As with sr3, a URL of files tells it itself.
        return urlsplit(self.base_url).path if self.base_url.startswith(FILE_SCHEME) else None

    def path_of(self, path: str) -> str:
        """Return what of a path follows the base URL. Raises `NotBelowBaseDirectory`."""
        if self.root is None:
            return path.lstrip("/")
        rest = _below(path, self.root)
        if rest is None:
            raise NotBelowBaseDirectory(f"{path[:200]!r} is not below the base directory {self.root[:200]!r}")
        if self.base_directory is None:
            return rest
        # What the URL's own path says already is not said twice, as with sr3.
        return _below(f"/{rest}", urlsplit(self.base_url).path) or rest

    def announcements(
        self, found: Found, contents: Contents = NOTHING_READ, *, now: datetime, random: int
    ) -> Iterator[Announcement]:
        """Yield what is said of a path: one announcement, or one for each block. `random` is one of 0 to 9999."""
        whole = Announcement(
            published_at=now,
            base_url=self.base_url,
            path=self.path_of(found.path),
            source=self.source,
            size_bytes=found.size_bytes if found.kind == Kind.FILE else None,
            identity=contents.identity or self._unread_identity(random),
            content=contents.content,
            operation=_operation(found),
            modified_at=found.modified_at if found.kind == Kind.FILE else None,
            accessed_at=found.accessed_at if found.kind == Kind.FILE else None,
            mode=None if found.mode is None else f"{found.mode & 0o7777:o}",
            content_type=DIRECTORY_TYPE if found.kind == Kind.DIRECTORY else None,
        )
        if not contents.blocks:
            yield whole
            return
        method = self.method.name
        for block, told in zip(contents.blocks, file_in_blocks(contents.blocks), strict=True):
            identity = Identity(method, block.identity)
            yield replace(whole, size_bytes=block.size_bytes, identity=identity, blocks=told)

    def _unread_identity(self, random: int) -> Identity | None:
        # sr3 gives these to links and directories too, but `arbitrary` only to what it opens.
        return self.method.identity((), random=random) if self.method.name in (COMPUTE_ON_DOWNLOAD, RANDOM) else None

    def post(self, announcement: Announcement) -> Post:
        """Return the message. Raises `InvalidTopic`."""
        prefix = PREFIXES[self.form] if self.topic_prefix is None else self.topic_prefix
        sent = payload(announcement, self.form)
        headers = {name: str(value) for name, value in sent.headers.items()}
        return Post(self.exchange, topic_of(announcement.path, prefix=prefix), sent.body, headers)


def _is_url(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:  # such as half of an address in brackets
        return False


def _below(path: str, directory: str) -> str | None:
    start = f"{directory.rstrip('/')}/"
    return path[len(start) :] if path.startswith(start) else None


def _operation(found: Found) -> FileOperation | None:
    match found.kind:
        case Kind.FILE:
            return None
        case Kind.LINK:
            return FileOperation(link=found.target or "")
        case Kind.DIRECTORY:
            return FileOperation(directory=True)
        case _:
            return FileOperation(removed=True, directory=found.kind == Kind.REMOVED_DIRECTORY)
