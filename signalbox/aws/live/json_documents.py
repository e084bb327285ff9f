"""JSON documents of other services over HTTPS, each with one limit of time and one of bytes for the whole answer."""

import io
import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from signalbox.documents import shown
from signalbox.exchange.model.issuers import LOOPBACK

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CONNECT_SECONDS, REQUEST_SECONDS = 2.0, 3.0
MAXIMUM_BYTES = 262_144
OK = 200


class NoDocument(Exception):
    """Raised when a service does not answer with a JSON object; `status` is its HTTP status, if it has answered."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class JsonDocuments:
    """A reader of documents. With `allows_loopback`, those of this machine may be plain HTTP (local stage)."""

    allows_loopback: bool = False

    def read(self, url: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """Return the JSON object of a URL. Redirects are not followed, and compressed answers are not requested.

        Raises `NoDocument`, whose text has the path of the URL only.
        """
        try:
            parts = urlsplit(url)
            is_local = self.allows_loopback and parts.hostname in LOOPBACK
        except ValueError as error:
            raise NoDocument("an address of it is not a URL") from error
        if parts.scheme != "https" and not is_local:
            raise NoDocument("a URL of it is not HTTPS")
        try:
            document = json.loads(_body(parts, headers or {}, is_local=is_local))
        except (HTTPException, OSError, ValueError, RecursionError) as error:
            raise NoDocument(f"{type(error).__name__} at {shown(parts.path)}") from error
        if not isinstance(document, dict):
            raise NoDocument(f"no JSON object at {shown(parts.path)}")
        return document


class _BoundedSocket(io.RawIOBase):
    """A connection whose answer has `MAXIMUM_BYTES` at most and is over after `REQUEST_SECONDS`, with its headers."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self.connection, self.until, self.left = connection, time.monotonic() + REQUEST_SECONDS, MAXIMUM_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        remaining = self.until - time.monotonic()
        if remaining <= 0 or self.left <= 0:
            raise ValueError("the answer is too long, or takes too long")
        self.connection.settimeout(remaining)
        count = self.connection.recv_into(buffer)
        self.left -= count
        return count

    def sendall(self, data: bytes) -> None:
        self.connection.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def close(self) -> None:
        """Do nothing: `HTTPConnection` closes its socket before it has read the body."""


def _body(parts: SplitResult, headers: Mapping[str, str], *, is_local: bool) -> bytes:
    host = parts.hostname or ""
    http = HTTPConnection(host)
    every = {"host": parts.netloc.rpartition("@")[2], "accept": "application/json", "connection": "close", **headers}
    with _connected(host, parts, is_local=is_local) as connection:
        http.sock = _BoundedSocket(connection)
        http.request("GET", f"{parts.path or '/'}?{parts.query}".rstrip("?"), headers=every)
        response = http.getresponse()
        if response.status != OK:
            raise NoDocument(f"status {response.status} at {shown(parts.path)}", response.status)
        return response.read()


def _connected(host: str, parts: SplitResult, *, is_local: bool) -> socket.socket:
    """Return a connection to the host of a URL, encrypted for HTTPS.

    Addresses of this machine and its link have what AWS gives to the function alone. Private addresses are permitted:
    an issuer may be in the company's network.
    """
    is_secure = parts.scheme == "https"
    connection = socket.create_connection((host, parts.port or (443 if is_secure else 80)), timeout=CONNECT_SECONDS)
    if not is_local and not is_permitted(connection.getpeername()[0]):
        connection.close()
        raise OSError("the address is of this machine or of its link")
    if not is_secure:
        return connection
    with connection:  # whose descriptor the encrypted connection takes over
        return _tls().wrap_socket(connection, server_hostname=host)


def is_permitted(text: str) -> bool:
    """Return whether an address is outside of this machine and of its link."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return not (address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
