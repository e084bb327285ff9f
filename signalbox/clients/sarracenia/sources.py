"""Where files come from: web servers and the file system; others may be added by their scheme."""

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
from signalbox.sarracenia.subscription.filters import joined

CHUNK_BYTES = 1024 * 1024
TIMEOUT_SECONDS = 60.0
# Of what a server is asked for by a path of its own, these are not part of a name.
QUERY_CHARACTERS = "/?&=+:;,@%~"


class NotFetched(UnavailableError):
    """Raised when a file could not be fetched this time."""


class UnknownSource(RejectedError):
    """Raised when an announcement's URL is none from which files are fetched."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file, in bytes."""

    start: int
    size_bytes: int

    @property
    def header(self) -> str:
        """Return it as HTTP says it. Raises `ValueError` of numbers that are too long to be written."""
        return f"bytes={self.start}-{self.start + self.size_bytes - 1}"


Source = Callable[[str, Part | None], Iterator[bytes]]
"""Yields a file's bytes, or those of a part; raises `NotFetched`."""


def source_url(announcement: Announcement) -> str:
    """Return the URL from which a file is fetched; names are escaped as URLs need it."""
    if announcement.retrieve_path:
        return joined(
            announcement.base_url, quote(announcement.retrieve_path, QUERY_CHARACTERS, errors="surrogatepass")
        )
    return joined(announcement.base_url, quote(announcement.path, errors="surrogatepass"))


def fetched(url: str, part: Part | None, sources: Mapping[str, Source]) -> Iterator[bytes]:
    """Yield the bytes of a file, or of a part, from whichever source knows the scheme. Raises `UnknownSource`."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise UnknownSource(f"{url[:200]!r} is no URL: {error}") from error
    if scheme not in sources:
        raise UnknownSource(f"cannot fetch {url[:200]!r}: known are {', '.join(f'{known}:' for known in sources)}")
    return sources[scheme](url, part)


def from_file(url: str, part: Part | None) -> Iterator[bytes]:
    """Yield the bytes of a file of this machine."""
    path = Path(unquote(urlsplit(url).path))
    try:
        with path.open("rb") as file:
            file.seek(part.start if part else 0)
            yield from limited(file, part)
    except (OSError, ValueError, OverflowError) as error:
        raise NotFetched(f"cannot read {str(path)[:200]!r}: {error}") from error


def from_web(url: str, part: Part | None) -> Iterator[bytes]:
    """Yield the bytes that a web server has; redirections lead to web servers only."""
    try:
        headers = {"User-Agent": "signalbox", "Accept-Encoding": "identity", **_range(part)}
        with _web().open(request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - only http and https are known to it
            if part and response.status != HTTPStatus.PARTIAL_CONTENT:
                _skip(response, part.start)  # the server knows no parts, and sends all
            yield from limited(response, part)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotFetched(f"cannot fetch {url[:200]!r}: {_reason(error)}") from error


def _range(part: Part | None) -> dict[str, str]:
    return {"Range": part.header} if part else {}


def _web() -> request.OpenerDirector:
    # Not build_opener, which adds FTP, and files of this machine.
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
    for _ in limited(file, Part(0, size_bytes)):
        pass


def limited(file: BinaryIO, part: Part | None) -> Iterator[bytes]:
    """Yield what is left of a file, or as much as a part has."""
    left = part.size_bytes if part else None
    while left != 0 and (chunk := file.read(CHUNK_BYTES if left is None else min(left, CHUNK_BYTES))):
        left = None if left is None else left - len(chunk)
        yield chunk


SOURCES: Mapping[str, Source] = {"http": from_web, "https": from_web, "file": from_file}
