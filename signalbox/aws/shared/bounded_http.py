"""Requests to services outside of AWS, each with one limit of time and one of bytes for the whole answer."""

import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

OK = 200


@dataclass(frozen=True, slots=True)
class BoundedHttp:
    """Requests that connect and are answered within `seconds`, and whose answers have `maximum_bytes` with headers.

    `permits` returns whether a connection to an address may be opened.
    """

    seconds: float
    maximum_bytes: int
    permits: Callable[[str], bool] = lambda _: True

    def answer(
        self, url: SplitResult, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return the status of an answer, and its body if the status is 200. Redirects are not followed.

        Raises `OSError`, of which `TimeoutError` is one, `HTTPException`, and `ValueError` for an invalid URL.
        """
        until = time.monotonic() + self.seconds
        http = HTTPConnection(url.hostname or "", 0)
        every = {"host": url.netloc.rpartition("@")[2], "connection": "close", **(headers or {})}
        with self._connected(url, until) as connection:
            http.sock = _BoundedSocket(connection, until, self.maximum_bytes)
            http.request(method, f"{url.path or '/'}?{url.query}".rstrip("?"), body, every)
            response = http.getresponse()
            return response.status, response.read() if response.status == OK else b""

    def _connected(self, url: SplitResult, until: float) -> socket.socket:
        host, is_secure = url.hostname or "", url.scheme == "https"
        connection = self._opened(host, url.port or (443 if is_secure else 80), until)
        if not is_secure:
            return connection
        with connection:  # whose descriptor the encrypted connection takes over
            connection.settimeout(_left(until))
            return _tls().wrap_socket(connection, server_hostname=host)

    def _opened(self, host: str, port: int, until: float) -> socket.socket:
        problem: OSError = OSError("the address is not permitted")
        for address in _addresses(host, port, until):
            if self.permits(address):
                try:
                    return socket.create_connection((address, port), timeout=_left(until))
                except OSError as error:
                    problem = error
        raise problem


class _BoundedSocket(io.RawIOBase):
    """A connection whose answer has a number of bytes at most and is over at a time, with its headers."""

    def __init__(self, connection: socket.socket, until: float, maximum_bytes: int) -> None:
        super().__init__()
        self.connection, self.until, self.left = connection, until, maximum_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        if self.left <= 0:
            raise HTTPException("the answer is too long")
        self.connection.settimeout(_left(self.until))
        count = self.connection.recv_into(buffer)
        self.left -= count
        return count

    def sendall(self, data: bytes) -> None:
        self.connection.settimeout(_left(self.until))
        self.connection.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def close(self) -> None:
        """Do nothing: `HTTPConnection` closes its socket before it has read the body."""


def _addresses(host: str, port: int, until: float) -> list[str]:
    """Return the addresses of a host. The system waits for a name server as long as it likes, so a thread does so."""
    found = SimpleQueue[list[str] | Exception]()

    def look_up() -> None:
        try:
            found.put([str(address) for *_, (address, *_) in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, ValueError) as error:
            found.put(error)

    Thread(target=look_up, daemon=True).start()
    try:
        answer = found.get(timeout=_left(until))
    except Empty:
        raise TimeoutError("the name server takes too long") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the answer takes too long")
    return left


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
