"""Whether bytes are those that were announced."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

from signalbox.clients.sarracenia.sources import Part, limited
from signalbox.errors import UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.identity import CHECKSUMS, Identity, checksum


class NotVerified(UnavailableError):
    """Raised when a file is not what was announced: it has changed since, or was damaged on its way."""


def verified(chunks: Iterable[bytes], announcement: Announcement, *, size_bytes: int | None = None) -> Iterator[bytes]:
    """Yield bytes; raises `NotVerified` as soon as they are too many, at the end if they are not those announced."""
    expected = announcement.size_bytes if size_bytes is None else size_bytes
    identity = _checksum_of(announcement)
    digest = hashlib.new(identity.method if identity else CHECKSUMS[0], usedforsecurity=False)
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if expected is not None and count > expected:
            break
        digest.update(chunk)
        yield chunk
    if expected is not None and count != expected:
        more = " or more" if count > expected else ""
        raise NotVerified(f"{announcement.path[:200]!r} has {count} bytes{more}, not {expected} as announced")
    if identity and b64encode(digest.digest()).decode() != identity.value:
        raise NotVerified(f"{announcement.path[:200]!r} has another {identity.method} checksum than was announced")


def _checksum_of(announcement: Announcement) -> Identity | None:
    identity = announcement.identity
    return identity if identity and identity.method in CHECKSUMS else None


def has_content(path: Path, announcement: Announcement, *, part: Part | None = None) -> bool:
    """Say whether a file, or a part of it, is what is announced, by its checksum; without one it is not known."""
    identity = _checksum_of(announcement)
    if identity is None or path.is_symlink() or not path.is_file():
        return False
    size_bytes = path.stat().st_size
    if part.start + part.size_bytes > size_bytes if part else announcement.size_bytes not in (None, size_bytes):
        return False
    with path.open("rb") as file:
        file.seek(part.start if part else 0)
        return checksum(identity.method, limited(file, part)) == identity
