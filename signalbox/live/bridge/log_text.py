"""The text of a container's log file as publications: whole lines, without tokens and what reading itself writes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# JSON writes a byte as at most six characters, and a body has at most 120,000 bytes.
MAXIMUM_BYTES = 20_000
# A long line is cut behind a space or quote of its last bytes, if there is one.
CUT_BYTES = 512
# The longest token with its container's UUID has fewer bytes, in whatever form its slashes are written.
TOKEN_BYTES = 256
CRUNCH_RUN = "crunch-run"
_SLASH = rb"(?:\\*/|%(?:25)*2f|\\+u002f|&#(?:47|x2f);)"
_TOKEN = re.compile(rb"v2" + _SLASH + rb"[a-z0-9-]{27}" + _SLASH + rb'[^/"\s]', re.IGNORECASE)
# crunchrun.go, `container token %q`; container_gateway.go, `tunnel connection %d: …`, for each request of a reader.
_OMITTED = re.compile(rb"container token\b|^(?:\S+ )?tunnel connection \d+: ")
_TOKEN_BEGIN = re.compile(rb"v2", re.IGNORECASE)
_CONTINUATION = range(0x80, 0xC0)  # the bytes of a character of UTF-8 behind its first
_BREAKS = (b" ", b"\t", b"\r", b'"')


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes from `begin` to `end` of a file as a text; `is_unfinished` if it does not end with a line.

    `omitted_lines` are lines of these bytes that are not in the text, `replaced` the places in it whose bytes are not
    UTF-8. After a file was cut back, a piece without text has `cut_back_from`, the number of bytes that were published.
    """

    begin: int
    end: int
    text: str = ""
    omitted_lines: int = 0
    replaced: int = 0
    cut_back_from: int | None = None

    @property
    def is_unfinished(self) -> bool:
        """Return whether the text ends within a line."""
        return bool(self.text) and not self.text.endswith("\n")

    @property
    def is_visible(self) -> bool:
        """Return whether the piece is published."""
        return bool(self.text) or self.cut_back_from is not None

    def headers(self) -> dict[str, str]:
        """Return the headers of the publication: the place of the text in its file, and what differs from it."""
        marks = {
            "omitted_lines": self.omitted_lines,
            "replaced": self.replaced,
            "unfinished": int(self.is_unfinished),
            "cut_back_from": self.cut_back_from or 0,
        }
        return {"begin": str(self.begin), "end": str(self.end), **{name: str(n) for name, n in marks.items() if n}}


def pieces(name: str, data: bytes, begin: int, *, is_over: bool) -> list[Piece]:
    """Return the pieces of a file's bytes from `begin`; the end of the last is where the next bytes are read.

    A line without its end is left for later, unless it is longer than a piece or the file is over.
    """
    found: list[Piece] = []
    group: list[tuple[bytes, bool]] = []
    size = 0  # of the group: a sum for each line takes minutes for a megabyte of empty ones
    for segment in _segments(data, is_over=is_over):
        if size + len(segment) > MAXIMUM_BYTES:
            found.append(_piece(group, found[-1].end if found else begin))
            group, size = [], 0
        group.append((segment, _is_omitted(name, segment)))
        size += len(segment)
    if group:
        found.append(_piece(group, found[-1].end if found else begin))
    return found


def _segments(data: bytes, *, is_over: bool) -> Iterator[bytes]:
    """Yield lines, and the parts of lines that are longer than a piece."""
    at = 0
    while at < len(data):
        newline = data.find(b"\n", at)
        end = newline + 1 if newline >= 0 else len(data)
        if end - at > MAXIMUM_BYTES:
            end = _cut(data, at)
        elif newline < 0 and not is_over:
            return
        yield data[at:end]
        at = end


def has_token(text: bytes) -> bool:
    """Return whether a text contains an API token of Arvados."""
    return _TOKEN.search(text) is not None


def _is_omitted(name: str, segment: bytes) -> bool:
    return has_token(segment) or (name == CRUNCH_RUN and _OMITTED.search(segment) is not None)


def _piece(group: list[tuple[bytes, bool]], begin: int) -> Piece:
    shown = b"".join(segment for segment, is_omitted in group if not is_omitted)
    text = shown.decode("utf-8", "replace")
    replaced = text.count("\ufffd") - shown.count(b"\xef\xbf\xbd")
    if text.startswith("\0"):  # WAMP takes such a string for base64
        text, replaced = "\ufffd" + text[1:], replaced + 1
    size = sum(len(segment) for segment, _ in group)
    return Piece(begin, begin + size, text, sum(is_omitted for _, is_omitted in group), replaced)


def _cut(data: bytes, begin: int) -> int:
    """Return where a line that begins at a place is cut: never within a token or a character."""
    limit = begin + MAXIMUM_BYTES
    tail = limit - CUT_BYTES
    space = max(data.rfind(one, tail, limit) for one in _BREAKS)
    if space > 0:
        return space + 1
    place = limit
    while found := _TOKEN_BEGIN.search(data, max(place - TOKEN_BYTES, begin + 1), place + 1):
        place = found.start()
    if place - TOKEN_BYTES > begin and place < limit:
        return place
    while data[limit] in _CONTINUATION and limit > tail:
        limit -= 1
    return limit
