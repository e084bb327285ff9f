"""Comparison of downloaded and existing bytes with the size and checksum in an announcement."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

from signalbox.clients.sarracenia.sources import ByteRange, read_limited
from signalbox.errors import UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.identity import CHECKSUMS, Identity, checksum


class NotVerified(UnavailableError):
    """Raised when a file differs from its announcement: it changed since, or was damaged in transit."""


def verified_chunks(
    chunks: Iterable[bytes], announcement: Announcement, *, size_bytes: int | None = None
) -> Iterator[bytes]:
    """Yield chunks unchanged while verifying them; `size_bytes` replaces the announced size.

    Raises `NotVerified` as soon as there are too many bytes, and at the end if the size or the checksum differs.
    """
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


def has_content(path: Path, announcement: Announcement, *, byte_range: ByteRange | None = None) -> bool:
    """Return whether a file, or a range of it, has the announced checksum; False without a checksum."""
    identity = _checksum_of(announcement)
    if identity is None or path.is_symlink() or not path.is_file():
        return False
    size_bytes = path.stat().st_size
    if (
        byte_range.start + byte_range.size_bytes > size_bytes
        if byte_range
        else announcement.size_bytes not in (None, size_bytes)
    ):
        return False
    with path.open("rb") as file:
        file.seek(byte_range.start if byte_range else 0)
        return checksum(identity.method, read_limited(file, byte_range)) == identity
