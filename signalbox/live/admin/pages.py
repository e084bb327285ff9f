"""The HTTP responses of the live page: its files, their headers, its configuration and the health check."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from urllib.parse import urlsplit

from signalbox.exchange.model.issuers import Issuer

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
# A hidden frame of the page, in which an identity provider may renew a token without a refresh token.
FRAMED = frozenset({"renewed.html"})
# A header of the API has 10,240 bytes at most, and the policy names each origin twice. The page is the same for all
# realms, since only its user names the realm: for more issuers, the policy admits every https origin.
MAXIMUM_ORIGINS_LENGTH = 3_500
# A deployment may change a file under the same name: browsers cache it and revalidate it by its ETag.
CACHING = "no-cache"


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page; its `etag` is a digest of the content."""

    body: str
    content_type: str
    etag: str

    @classmethod
    def of(cls, name: str, body: str) -> "File | None":
        """Return a file, or None for a file type that the page does not use."""
        _, dot, extension = name.rpartition(".")
        content_type = CONTENT_TYPES.get(dot + extension)
        return None if content_type is None else cls(body, content_type, _etag(body))

    @property
    def is_document(self) -> bool:
        """Return whether a browser applies the headers of this file to a page."""
        return self.content_type == CONTENT_TYPES[".html"]

    def with_policy(self, policy: str) -> "File":
        """Return the file with an ETag for the body and the policy: a new policy must replace a cached one."""
        return replace(self, etag=_etag(f"{policy}\n{self.body}"))

    def is_known(self, if_none_match: str) -> bool:
        """Return whether an `If-None-MatchPolicy` header has this file's ETag (RFC 9110, 13.1.2)."""
        tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        return self.etag in tags or "*" in tags


def headers(websocket_url: str, policy: str | None = None) -> dict[str, str]:
    """Return the headers of every response, with the policy of a document or the strictest one."""
    return {
        "Content-Security-Policy": policy or content_policy(websocket_url),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Strict-Transport-Security": "max-age=31536000",
        "Cache-Control": CACHING,
    }


def file_name(path: str) -> str | None:
    """Return the file name in a path such as `/live/log.css`, or None for a path that redirects to `/live/`."""
    _, found, name = path.partition("/live/")
    if not found:
        return None
    return name or FIRST_PAGE


def config(websocket_url: str, realms: Iterable[str], issuers: Iterable[tuple[str, Issuer]] = ()) -> str:
    """Return the JSON document that the page needs to connect: WebSocket URL, realms, and issuers of realms."""
    shown = [
        {
            "realm": realm,
            "url": issuer.url,
            "client_id": issuer.client,
            "audience": issuer.audience,
            "label": issuer.label,
        }
        for realm, issuer in issuers
    ]
    return json.dumps({"websocket_url": websocket_url, "realms": sorted(realms), "issuers": shown})


def health(problems: Mapping[str, str]) -> str:
    """Return the JSON document of the health check, in the format of arvados-ws."""
    return json.dumps({"health": "ERROR", "error": dict(problems)} if problems else {"health": "OK"})


def _etag(body: str) -> str:
    return f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'


def content_policy(websocket_url: str, issuers: Iterable[Issuer] = (), *, name: str = "") -> str:
    """Return the Content-Security-Policy of a file: no foreign resource, no inline script, one WebSocket server.

    The page may send requests to the endpoints of the issuers, and show them in a frame to renew a token.
    """
    parts = urlsplit(websocket_url)
    # A URL without a host is on the page's own host, which 'self' covers.
    elsewhere = [f"{parts.scheme}://{parts.netloc}"] if parts.netloc else []
    origins = sorted({origin for issuer in issuers for origin in (_origin(issuer.url), *issuer.origins)})
    if sum(map(len, origins)) > MAXIMUM_ORIGINS_LENGTH:
        origins = ["https:"]
    directives = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' blob:",  # blobs of the reports' pictures, which come through the connection
        "connect-src": " ".join(["'self'", *elsewhere, *origins]),
        # The frame first shows the provider, which then redirects to a file of the page.
        **({"frame-src": " ".join(["'self'", *origins])} if origins else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'" if name in FRAMED else "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
