"""Sources of files by URL scheme: web servers and the file system; callers may add others."""

import http.client
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO
from urllib import request
from urllib.error import URLError
from urllib.parse import quote, unquote, urlsplit

from signalbox.errors import RejectedError, UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.subscription.filters import join_url

CHUNK_BYTES = 1024 * 1024
TIMEOUT_SECONDS = 60.0
# Characters of `retrievePath` that belong to its syntax, not to a name, and are not escaped.
QUERY_CHARACTERS = "/?&=+:;,@%~"


class NotFetched(UnavailableError):
    """Raised when a file could not be fetched; a later attempt may succeed."""


class UnknownSource(RejectedError):
    """Raised when the URL of an announcement is malformed or has an unsupported scheme."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A range of the bytes of a file."""

    start: int
    size_bytes: int

    @property
    def header(self) -> str:
        """Return the value of HTTP's `Range`. Raises `ValueError` for numbers too long to convert to text."""
        return f"bytes={self.start}-{self.start + self.size_bytes - 1}"


Source = Callable[[str, ByteRange | None], Iterator[bytes]]
"""Yields the bytes of a file, or of a range of it; raises `NotFetched`."""


def source_url(announcement: Announcement) -> str:
    """Return the URL from which a file is fetched, with its path percent-encoded."""
    if announcement.retrieve_path:
        return join_url(
            announcement.base_url, quote(announcement.retrieve_path, QUERY_CHARACTERS, errors="surrogatepass")
        )
    return join_url(announcement.base_url, quote(announcement.path, errors="surrogatepass"))


def fetch(url: str, byte_range: ByteRange | None, sources: Mapping[str, Source]) -> Iterator[bytes]:
    """Yield the bytes of a file, or of a range of it, from the source of its scheme. Raises `UnknownSource`."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise UnknownSource(f"{url[:200]!r} is not a URL: {error}") from error
    if scheme not in sources:
        raise UnknownSource(f"cannot fetch {url[:200]!r}: supported are {', '.join(f'{known}:' for known in sources)}")
    return sources[scheme](url, byte_range)


def from_file(url: str, byte_range: ByteRange | None) -> Iterator[bytes]:
    """Yield the bytes of a local file, or of a range of it. Raises `NotFetched`."""
    path = Path(unquote(urlsplit(url).path))
    try:
        with path.open("rb") as file:
            file.seek(byte_range.start if byte_range else 0)
            yield from read_limited(file, byte_range)
    except (OSError, ValueError, OverflowError) as error:
        raise NotFetched(f"cannot read {str(path)[:200]!r}: {error}") from error


def from_web(url: str, byte_range: ByteRange | None) -> Iterator[bytes]:
    """Yield the bytes of a file of a web server; redirections to other schemes fail. Raises `NotFetched`."""
    try:
        headers = {"User-Agent": "signalbox", "Accept-Encoding": "identity", **_range(byte_range)}
        with _web().open(request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - the opener supports http and https only
            if byte_range and response.status != HTTPStatus.PARTIAL_CONTENT:
                _skip(response, byte_range.start)  # the server ignored `Range` and sends the whole file
            yield from read_limited(response, byte_range)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotFetched(f"cannot fetch {url[:200]!r}: {_reason(error)}") from error


def _range(byte_range: ByteRange | None) -> dict[str, str]:
    return {"Range": byte_range.header} if byte_range else {}


def _web() -> request.OpenerDirector:
    # build_opener would add FTP and local files.
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _reason(error: Exception) -> str:
    if isinstance(error, URLError) and isinstance(error.reason, socket.gaierror):
        return f"unknown host ({error.reason.strerror})"
    return str(error)


def _skip(file: BinaryIO, size_bytes: int) -> None:
    for _ in read_limited(file, ByteRange(0, size_bytes)):
        pass


def read_limited(file: BinaryIO, byte_range: ByteRange | None) -> Iterator[bytes]:
    """Yield the rest of an open file, or as many bytes as a range has."""
    left = byte_range.size_bytes if byte_range else None
    while left != 0 and (chunk := file.read(CHUNK_BYTES if left is None else min(left, CHUNK_BYTES))):
        left = None if left is None else left - len(chunk)
        yield chunk


SOURCES: Mapping[str, Source] = {"http": from_web, "https": from_web, "file": from_file}
