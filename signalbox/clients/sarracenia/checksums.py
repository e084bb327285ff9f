"""Reads what is to be announced: checksums of files or of their blocks, and small contents."""

from collections.abc import Iterator
from mimetypes import guess_type
from pathlib import Path
from typing import BinaryIO

from signalbox.errors import UnavailableError
from signalbox.sarracenia.formats.blocks import Block, block_sizes
from signalbox.sarracenia.formats.content import embedded
from signalbox.sarracenia.formats.identity import ARBITRARY, CHECKSUMS, Identity, IdentityMethod, checksum
from signalbox.sarracenia.formats.posts import NOTHING_READ, Contents, Found, Kind, Posting

CHUNK_BYTES = 1024 * 1024


class FileNotReadable(UnavailableError):
    """Raised when a file cannot be read as it was found: it is gone, forbidden, or being written."""


def contents_of(found: Found, posting: Posting) -> Contents:
    """Return what an announcement tells of a file's bytes. Raises `FileNotReadable`."""
    if found.kind != Kind.FILE:
        return NOTHING_READ
    try:
        return _read(found, posting, size_bytes=found.size_bytes or 0)
    except OSError as error:
        raise FileNotReadable(f"cannot read {found.path[:200]!r}: {error.strerror}") from error


def _read(found: Found, posting: Posting, *, size_bytes: int) -> Contents:
    sizes = block_sizes(size_bytes, block_bytes=posting.block_bytes) if posting.block_bytes else []
    is_embedded = size_bytes < (posting.content_limit_bytes or 0) and not sizes
    if not (sizes or is_embedded or posting.method.name in CHECKSUMS):
        return Contents(_unread(posting.method))
    with Path(found.path).open("rb") as file:
        if sizes:
            return Contents(blocks=tuple(_block(file, size, posting.method) for size in sizes))
        if not is_embedded:
            return Contents(_identity(posting.method, _whole(file, size_bytes, found.path)))
        octets = b"".join(_whole(file, size_bytes, found.path))
    content = embedded(octets, media_type=guess_type(found.path)[0], limit_bytes=posting.content_limit_bytes or 0)
    return Contents(_identity(posting.method, iter((octets,))), content=content)


def _identity(method: IdentityMethod, chunks: Iterator[bytes]) -> Identity | None:
    return checksum(method.name, chunks) if method.name in CHECKSUMS else _unread(method)


def _unread(method: IdentityMethod) -> Identity | None:
    return Identity(ARBITRARY, method.value) if method.name == ARBITRARY else None


def _block(file: BinaryIO, size_bytes: int, method: IdentityMethod) -> Block:
    return Block(size_bytes, checksum(method.name, _exactly(file, size_bytes)).value)


def _whole(file: BinaryIO, size_bytes: int, path: str) -> Iterator[bytes]:
    yield from _exactly(file, size_bytes)
    if file.read(1):
        raise FileNotReadable(f"{path[:200]!r} grew while it was read")


def _exactly(file: BinaryIO, size_bytes: int) -> Iterator[bytes]:
    left = size_bytes
    while left:
        chunk = file.read(min(left, CHUNK_BYTES))
        if not chunk:
            raise FileNotReadable(f"{str(file.name)[:200]!r} shrank while it was read")
        left -= len(chunk)
        yield chunk
