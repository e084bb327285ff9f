"""Puts a file together of its blocks, which may come in any order, twice, and to several instances at once."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from signalbox.clients.sarracenia.sources import Part
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.blocks import Blocks
from signalbox.sarracenia.formats.times import v03_time


@dataclass(frozen=True, slots=True)
class Assembly:
    """The blocks of a file that are there already, each in a file of its own in `directory`."""

    announcement: Announcement
    blocks: Blocks
    directory: Path

    @property
    def part(self) -> Part:
        """Return where in the file the announced block is."""
        own = self.blocks.manifest.get(self.blocks.number)
        size_bytes = own.size_bytes if own else self.announcement.size_bytes
        start = self.blocks.number * self.blocks.size_bytes
        return Part(start, self.blocks.size_bytes if size_bytes is None else size_bytes)

    def keep(self, block: Path) -> None:
        """Take the announced block."""
        block.replace(self._kept(self.blocks.number))

    def is_complete(self) -> bool:
        """Say whether all blocks are there."""
        # From the end on, since blocks mostly come from the beginning on, and then one look is enough.
        return all(self._kept(number).exists() for number in reversed(range(self.blocks.count)))

    def write(self, whole: Path) -> None:
        """Put the file together. Raises `FileNotFoundError` when somebody else has."""
        with whole.open("xb") as target:
            for number in range(self.blocks.count):
                with self._kept(number).open("rb") as block:
                    shutil.copyfileobj(block, target)

    def forget(self) -> None:
        """Remove the blocks, once the whole file is in its place: until then, they are all there is."""
        # By what is there: the count is whatever a message says.
        for block in self.directory.glob(f"{self._version()}.*"):
            block.unlink(missing_ok=True)

    def _kept(self, number: int) -> Path:
        return self.directory / f"{self._version()}.{number}"

    def _version(self) -> str:
        """Return a name that blocks have in common if they are of one file as it was at one moment."""
        told = [self.announcement.path, str(self.blocks.size_bytes), str(self.blocks.count)]
        if self.announcement.modified_at is not None:
            told.append(v03_time(self.announcement.modified_at))
        if len(self.blocks.manifest) == self.blocks.count:  # in v02, each block knows itself alone
            told += [block.identity for _, block in sorted(self.blocks.manifest.items())]
        return hashlib.sha256("\0".join(told).encode(errors="surrogatepass")).hexdigest()[:24]
