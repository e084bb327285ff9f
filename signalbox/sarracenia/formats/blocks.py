"""Blocks of large files, each announced by a message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEFAULT_BLOCK_BYTES = 50 * 1024 * 1024  # sr3 3.3.1, blockSize 0


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a file; `identity` is its digest in base64."""

    size_bytes: int
    identity: str


@dataclass(frozen=True, slots=True)
class Blocks:
    """A block of a file, with the manifest of all blocks; in v02 the manifest holds this block only."""

    method: str
    size_bytes: int
    count: int
    number: int
    manifest: Mapping[int, Block]


def block_sizes(size_bytes: int, *, block_bytes: int = DEFAULT_BLOCK_BYTES) -> list[int]:
    """Return the sizes of a file's blocks in bytes; empty for a file that is not larger than one block."""
    if size_bytes <= block_bytes:
        return []
    whole, rest = divmod(size_bytes, block_bytes)
    return [block_bytes] * whole + ([rest] if rest else [])


def file_in_blocks(blocks: Sequence[Block]) -> list[Blocks]:
    """Return the `Blocks` of each block's announcement, in order; every one has the whole manifest."""
    manifest = dict(enumerate(blocks))
    return [Blocks("inplace", blocks[0].size_bytes, len(blocks), number, manifest) for number in manifest]
