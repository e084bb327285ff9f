"""JSON documents of other services over HTTPS, read with short time-outs and bounded sizes."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from signalbox.exchange.model.issuers import LOOPBACK

CONNECT_SECONDS, REQUEST_SECONDS = 2.0, 3.0
MAXIMUM_BYTES = 262_144
CHUNK_BYTES = 16_384
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
    _pool: PoolManager = field(default_factory=lambda: PoolManager(8, maxsize=2))

    def read(self, url: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """Return the JSON object of a URL. Redirects are not followed, and compressed answers are not requested.

        Raises `NoDocument`, whose text has the path of the URL only.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" and not (self.allows_loopback and parts.hostname in LOOPBACK):
            raise NoDocument("a URL of it is not HTTPS")
        try:
            document = json.loads(self._body(url, headers or {}))
        except (HTTPError, OSError, ValueError, RecursionError) as error:
            raise NoDocument(f"{type(error).__name__} at {parts.path}") from error
        if not isinstance(document, dict):
            raise NoDocument(f"no JSON object at {parts.path}")
        return document

    def _body(self, url: str, headers: Mapping[str, str]) -> bytes:
        until = time.monotonic() + REQUEST_SECONDS  # a time-out of a socket is one of each read
        response = self._pool.request(
            "GET",
            url,
            headers={"accept": "application/json", "accept-encoding": "identity", **headers},
            timeout=Timeout(connect=CONNECT_SECONDS, read=REQUEST_SECONDS),
            redirect=False,
            retries=False,
            preload_content=False,
        )
        try:
            body = b""
            while chunk := response.read1(CHUNK_BYTES, decode_content=False):
                body += chunk
                if len(body) > MAXIMUM_BYTES or time.monotonic() > until:
                    raise ValueError("the answer is too long, or takes too long")
        finally:
            response.close()
        if response.status != OK:
            raise NoDocument(f"status {response.status} at {urlsplit(url).path}", response.status)
        return body
