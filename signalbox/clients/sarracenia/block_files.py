"""Assembly of files from their blocks, which arrive in any order, repeatedly and at several instances at once."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from signalbox.clients.sarracenia.sources import ByteRange
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.blocks import Blocks
from signalbox.sarracenia.formats.times import v03_time


@dataclass(frozen=True, slots=True)
class BlockAssembly:
    """The downloaded blocks of one file, each stored as a separate file in `directory`."""

    announcement: Announcement
    blocks: Blocks
    directory: Path

    @property
    def byte_range(self) -> ByteRange:
        """Return the position of the announced block in the file."""
        own = self.blocks.manifest.get(self.blocks.number)
        size_bytes = own.size_bytes if own else self.announcement.size_bytes
        start = self.blocks.number * self.blocks.size_bytes
        return ByteRange(start, self.blocks.size_bytes if size_bytes is None else size_bytes)

    def add(self, block: Path) -> None:
        """Store the announced block by moving its file into the directory."""
        block.replace(self._block_path(self.blocks.number))

    def is_complete(self) -> bool:
        """Return whether all blocks are stored."""
        # Blocks mostly arrive from first to last, so checking from the last one usually needs one look.
        return all(self._block_path(number).exists() for number in reversed(range(self.blocks.count)))

    def write(self, whole: Path) -> None:
        """Write the file from its blocks. Raises `FileNotFoundError` when another instance has assembled it."""
        with whole.open("xb") as target:
            for number in range(self.blocks.count):
                with self._block_path(number).open("rb") as block:
                    shutil.copyfileobj(block, target)

    def delete_blocks(self) -> None:
        """Delete the blocks. Call this only when the whole file is in place: until then they are the only copy."""
        # List the directory instead of counting: the count comes from a message and is not trusted.
        for block in self.directory.glob(f"{self._version()}.*"):
            block.unlink(missing_ok=True)

    def _block_path(self, number: int) -> Path:
        return self.directory / f"{self._version()}.{number}"

    def _version(self) -> str:
        """Return a name that all blocks of one version of the file share."""
        texts = [self.announcement.path, str(self.blocks.size_bytes), str(self.blocks.count)]
        if self.announcement.modified_at is not None:
            texts.append(v03_time(self.announcement.modified_at))
        if len(self.blocks.manifest) == self.blocks.count:  # a v02 announcement holds the identity of its block only
            texts += [block.identity for _, block in sorted(self.blocks.manifest.items())]
        return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:24]
