"""Contents that travel inside their announcement, when they are small."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Literal

DEFAULT_LIMIT_BYTES = 4096  # sr3 3.3.1, inlineByteMax


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes as text."""

    encoding: Literal["utf-8", "base64"]
    value: str

    @property
    def octets(self) -> bytes:
        """Return the bytes."""
        return b64decode(self.value) if self.encoding == "base64" else self.value.encode()


def embedded(octets: bytes, *, media_type: str | None, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Content | None:
    """Return a content as it is put into a message, or None when it is not below the limit.

    `media_type` is what the file's name suggests: without one, or with one that is no text, it is base64.
    """
    if len(octets) >= limit_bytes:
        return None
    if media_type and "text" in media_type:
        try:
            return Content("utf-8", octets.decode())
        except UnicodeDecodeError:  # the name promised too much
            pass
    return Content("base64", b64encode(octets).decode())
