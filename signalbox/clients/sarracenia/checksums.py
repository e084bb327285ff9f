"""Reads files to announce: checksums of files or of their blocks, and contents small enough to embed."""

from collections.abc import Iterator
from mimetypes import guess_type
from pathlib import Path
from typing import BinaryIO

from signalbox.errors import UnavailableError
from signalbox.sarracenia.formats.blocks import Block, block_sizes
from signalbox.sarracenia.formats.content import embed
from signalbox.sarracenia.formats.identity import ARBITRARY, CHECKSUMS, Identity, IdentityMethod, checksum
from signalbox.sarracenia.formats.posts import NO_CONTENTS, FileContents, FileEntry, FileKind, PostSettings

CHUNK_BYTES = 1024 * 1024


class FileNotReadable(UnavailableError):
    """Raised when a file disappeared, is forbidden, or changes while it is read."""


def read_contents(entry: FileEntry, posting: PostSettings) -> FileContents:
    """Return the identity, blocks and embedded content to announce for a file. Raises `FileNotReadable`."""
    if entry.kind != FileKind.FILE:
        return NO_CONTENTS
    try:
        return _read(entry, posting, size_bytes=entry.size_bytes or 0)
    except OSError as error:
        raise FileNotReadable(f"cannot read {entry.path[:200]!r}: {error.strerror}") from error


def _read(entry: FileEntry, posting: PostSettings, *, size_bytes: int) -> FileContents:
    sizes = block_sizes(size_bytes, block_bytes=posting.block_bytes) if posting.block_bytes else []
    is_embedded = size_bytes < (posting.content_limit_bytes or 0) and not sizes
    if not (sizes or is_embedded or posting.method.name in CHECKSUMS):
        return FileContents(_unread_identity(posting.method))
    with Path(entry.path).open("rb") as file:
        if sizes:
            return FileContents(blocks=tuple(_block(file, size, posting.method) for size in sizes))
        if not is_embedded:
            return FileContents(_identity(posting.method, _read_whole(file, size_bytes, entry.path)))
        octets = b"".join(_read_whole(file, size_bytes, entry.path))
    content = embed(octets, media_type=guess_type(entry.path)[0], limit_bytes=posting.content_limit_bytes or 0)
    return FileContents(_identity(posting.method, iter((octets,))), content=content)


def _identity(method: IdentityMethod, chunks: Iterator[bytes]) -> Identity | None:
    return checksum(method.name, chunks) if method.name in CHECKSUMS else _unread_identity(method)


def _unread_identity(method: IdentityMethod) -> Identity | None:
    return Identity(ARBITRARY, method.value) if method.name == ARBITRARY else None


def _block(file: BinaryIO, size_bytes: int, method: IdentityMethod) -> Block:
    return Block(size_bytes, checksum(method.name, _read_exactly(file, size_bytes)).value)


def _read_whole(file: BinaryIO, size_bytes: int, path: str) -> Iterator[bytes]:
    yield from _read_exactly(file, size_bytes)
    if file.read(1):
        raise FileNotReadable(f"{path[:200]!r} grew while it was read")


def _read_exactly(file: BinaryIO, size_bytes: int) -> Iterator[bytes]:
    left = size_bytes
    while left:
        chunk = file.read(min(left, CHUNK_BYTES))
        if not chunk:
            raise FileNotReadable(f"{str(file.name)[:200]!r} shrank while it was read")
        left -= len(chunk)
        yield chunk
