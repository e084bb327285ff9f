"""How the live page is served: what its files are, how long they hold, and what a browser may do with them."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from urllib.parse import urlsplit

JSON = "application/json"
CONTENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
    }
)
FIRST_PAGE = "index.html"
# A file may change with each deployment under the same name: browsers keep it, and ask whether it is still so.
CACHING = "no-cache"


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page; `etag` changes with its content."""

    body: str
    content_type: str
    etag: str

    @classmethod
    def of(cls, name: str, body: str) -> "File | None":
        """Return a file, or None if it is of a kind that the page has not."""
        content_type = CONTENT_TYPES.get(PurePosixPath(name).suffix)
        return None if content_type is None else cls(body, content_type, _etag(body))

    def is_known(self, if_none_match: str) -> bool:
        """Say whether a browser has this file already, by the header that it sends (RFC 9110, 13.1.2)."""
        tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        return self.etag in tags or "*" in tags


def headers(websocket_url: str) -> dict[str, str]:
    """Return what every answer says: nothing from elsewhere, no script in markup, one server to connect to."""
    return {
        "Content-Security-Policy": _policy(websocket_url),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Strict-Transport-Security": "max-age=31536000",
        "Cache-Control": CACHING,
    }


def file_name(path: str) -> str | None:
    """Return the file of a path such as `/live/log.css`, or None if it has to be asked for as `/live/`."""
    _, found, name = path.partition("/live/")
    if not found:
        return None
    return name or FIRST_PAGE


def config(websocket_url: str, realms: Iterable[str]) -> str:
    """Return what the page has to know before it can connect."""
    return json.dumps({"websocket_url": websocket_url, "realms": sorted(realms)})


def health(troubles: Mapping[str, str]) -> str:
    """Return the answer to who asks how the stage is; arvados-ws has the same word."""
    return json.dumps({"health": "ERROR", "error": dict(troubles)} if troubles else {"health": "OK"})


def _etag(body: str) -> str:
    return f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'


def _policy(websocket_url: str) -> str:
    parts = urlsplit(websocket_url)
    # One without a host is on the page's own, which 'self' covers.
    elsewhere = f" {parts.scheme}://{parts.netloc}" if parts.netloc else ""
    directives = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' blob:",  # the reports' pictures come through the connection
        "connect-src": f"'self'{elsewhere}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())
