"""Lists that exceed one reply: pages, which are sorted by the JSON of entries, and beginnings of lists."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import accumulate

from signalbox.messages import MAXIMUM_BYTES

ROOM = MAXIMUM_BYTES - 16_384  # of a reply, without its id and `next`
MARKER = 1_000  # characters; an entry begins with its name, so that a change of the rest keeps its place


def page(entries: Sequence[object], *, after: str) -> dict[str, object]:
    """Return the first entries after the marker `after` as `result`, at least one, and the marker `next` or None.

    A list that changes between two pages still has each entry that stays; the last of a page may come twice.
    """
    left = sorted((place, text) for place, text in map(_placed, entries) if place > after)
    count = max(1, _fitting([text for _, text in left], ROOM))
    result = [json.loads(text) for _, text in left[:count]]
    return {"result": result, "next": left[count - 1][0] if count < len(left) else None}


def listed(**lists: Sequence[object]) -> dict[str, object]:
    """Return the beginnings of lists that fit into one reply together, and `unlisted`, the number of other entries."""
    shown, room = dict[str, list[object]](), ROOM
    for name, entries in lists.items():
        kept = entries[: _fitting(map(json_text, entries), room)]
        shown[name], room = list(kept), room - len(json_text(kept))
    return {**shown, "unlisted": sum(map(len, lists.values())) - sum(len(kept) for kept in shown.values())}


def _fitting(texts: Iterable[str], room: int) -> int:
    return sum(size <= room for size in accumulate(len(text) + 1 for text in texts))


def json_text(document: object) -> str:
    """Return compact JSON, which is ASCII: each character is one byte."""
    return json.dumps(document, separators=(",", ":"), default=str)


def _placed(entry: object) -> tuple[str, str]:
    """Return an entry's place in the order of pages, which is its JSON or begins so, and its JSON."""
    text = json_text(entry)
    if len(text) <= MARKER:
        return text, text
    return text[:MARKER] + hashlib.sha256(text.encode()).hexdigest(), text
