"""The `parts` header of v02: a whole file, or one block of it."""

from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.blocks import Block, Blocks
from signalbox.sarracenia.formats.fields import Fields, whole_number

METHODS = {"i": "inplace", "p": "partitioned"}
LETTERS = {method: letter for letter, method in METHODS.items()}
WHOLE = "1"


def parts_of(announcement: Announcement) -> str | None:
    """Return the `parts` header of an announcement, or None when the announcement has no size."""
    blocks = announcement.blocks
    if blocks is None:
        return None if announcement.size_bytes is None else f"{WHOLE},{announcement.size_bytes},1,0,0"
    block = blocks.manifest.get(blocks.number)
    own_bytes = block.size_bytes if block else announcement.size_bytes or 0
    # As in sr3, every method other than `inplace` is written as `partitioned`.
    return f"{LETTERS.get(blocks.method, 'p')},{blocks.size_bytes},{blocks.count},{own_bytes},{blocks.number}"


def read_parts(fields: Fields, *, identity: str = "") -> tuple[int | None, Blocks | None]:
    """Return the size and the block in `parts`, each None when absent; `identity` is the block's digest."""
    text = fields.text("parts")
    if text is None:
        return None, None
    letter, *rest = text.split(",")
    numbers = [number for part in rest if (number := whole_number(part)) is not None]
    if len(numbers) != len(rest) or len(rest) != 4 or letter not in (WHOLE, *METHODS):  # noqa: PLR2004 - the four below
        fields.problem("parts", f"expected 1,SIZE,1,0,0 or i,SIZE,COUNT,REST,NUMBER, not {text[:80]!r}")
        return None, None
    size_bytes, count, rest_bytes, number = numbers
    if number >= count:
        fields.problem("parts", f"there are {count} blocks, and no number {number}")
    if letter == WHOLE:
        return size_bytes, None
    # sr3 writes the size of this block; its predecessor wrote that of the last block, or 0 if it equals the others.
    own_bytes = rest_bytes if rest_bytes and number == count - 1 else size_bytes
    return own_bytes, Blocks(METHODS[letter], size_bytes, count, number, {number: Block(own_bytes, identity)})
