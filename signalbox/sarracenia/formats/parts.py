"""The `parts` of a file in v02: whole, or one block of it."""

from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.blocks import Block, Blocks
from signalbox.sarracenia.formats.fields import Fields, whole_number

METHODS = {"i": "inplace", "p": "partitioned"}
LETTERS = {method: letter for letter, method in METHODS.items()}
WHOLE = "1"


def parts_of(announcement: Announcement) -> str | None:
    """Return an announcement's `parts`, or None when it has no size."""
    blocks = announcement.blocks
    if blocks is None:
        return None if announcement.size_bytes is None else f"{WHOLE},{announcement.size_bytes},1,0,0"
    block = blocks.manifest.get(blocks.number)
    own_bytes = block.size_bytes if block else announcement.size_bytes or 0
    # As with sr3, whatever is not in place is partitioned.
    return f"{LETTERS.get(blocks.method, 'p')},{blocks.size_bytes},{blocks.count},{own_bytes},{blocks.number}"


def read_parts(fields: Fields, *, identity: str = "") -> tuple[int | None, Blocks | None]:
    """Return the size that `parts` tell, and the block, whose digest is `identity`."""
    text = fields.text("parts")
    if text is None:
        return None, None
    letter, *rest = text.split(",")
    numbers = [number for part in rest if (number := whole_number(part)) is not None]
    if len(numbers) != len(rest) or len(rest) != 4 or letter not in (WHOLE, *METHODS):  # noqa: PLR2004 - the four below
        fields.problem("parts", f"expected such as 1,SIZE,1,0,0 or i,SIZE,COUNT,REST,NUMBER, not {text[:80]!r}")
        return None, None
    size_bytes, count, rest_bytes, number = numbers
    if number >= count:
        fields.problem("parts", f"{number} is none of {count} blocks")
    if letter == WHOLE:
        return size_bytes, None
    # sr3 tells this block's size; the first Sarracenia told the last one's, or 0 when that is as large as the others.
    own_bytes = rest_bytes if rest_bytes and number == count - 1 else size_bytes
    return own_bytes, Blocks(METHODS[letter], size_bytes, count, number, {number: Block(own_bytes, identity)})
