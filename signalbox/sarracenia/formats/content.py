"""Small file contents that are embedded in their announcement."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Literal

DEFAULT_LIMIT_BYTES = 4096  # sr3 3.3.1, inlineByteMax


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes, encoded as text."""

    encoding: Literal["utf-8", "base64"]
    value: str

    @property
    def octets(self) -> bytes:
        """Return the decoded bytes."""
        return b64decode(self.value) if self.encoding == "base64" else self.value.encode()


def embed(octets: bytes, *, media_type: str | None, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Content | None:
    """Return the content to embed in a message, or None when it has `limit_bytes` or more.

    `media_type` is guessed from the file's name: a text type gives UTF-8, any other type or None gives base64.
    """
    if len(octets) >= limit_bytes:
        return None
    if media_type and "text" in media_type:
        try:
            return Content("utf-8", octets.decode())
        except UnicodeDecodeError:  # the name suggests text, but the bytes are not UTF-8
            pass
    return Content("base64", b64encode(octets).decode())
