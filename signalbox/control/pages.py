"""Pages of a list that exceeds one reply: entries are sorted by their JSON, and each page continues after the last."""

import hashlib
import json
from collections.abc import Sequence

from signalbox.messages import MAXIMUM_BYTES

ROOM = MAXIMUM_BYTES - 16_384  # of a reply, without its id and `next`
MARKER = 1_000  # characters; an entry begins with its name, so that a change of the rest keeps its place


def page(entries: Sequence[object], *, after: str) -> dict[str, object]:
    """Return the first entries after the marker `after` as `result`, at least one, and the marker `next` or None.

    A list that changes between two pages still has each entry that stays; the last of a page may come twice.
    """
    left = sorted((place, text) for place, text in map(_placed, entries) if place > after)
    size, count = 0, 0
    for _, text in left:
        size += len(text) + 1
        if count and size > ROOM:
            break
        count += 1
    is_last = count == len(left)
    result = [json.loads(text) for _, text in left[:count]]
    return {"result": result, "next": None if is_last else left[count - 1][0]}


def json_text(document: object) -> str:
    """Return compact JSON, which is ASCII: each character is one byte."""
    return json.dumps(document, separators=(",", ":"), default=str)


def _placed(entry: object) -> tuple[str, str]:
    """Return an entry's place in the order of pages, which is its JSON or begins so, and its JSON."""
    text = json_text(entry)
    if len(text) <= MARKER:
        return text, text
    return text[:MARKER] + hashlib.sha256(text.encode()).hexdigest(), text
