"""JSON documents of other services over HTTPS, each with one limit of time and one of bytes for the whole answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from signalbox.aws.shared.bounded_http import OK, BoundedHttp
from signalbox.documents import shown
from signalbox.exchange.model.issuers import LOOPBACK

REQUEST_SECONDS = 3.0
MAXIMUM_BYTES = 262_144


class NoDocument(Exception):
    """Raised when a service does not answer with a JSON object; `status` is its HTTP status, if it has answered."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class JsonDocuments:
    """A reader of documents. With `allows_loopback`, those of this machine may be plain HTTP (local stage).

    `left` returns the seconds that the invocation has for an answer.
    """

    allows_loopback: bool = False
    left: Callable[[], float] = lambda: REQUEST_SECONDS

    def read(self, url: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """Return the JSON object of a URL. Redirects are not followed, and compressed answers are not requested.

        Raises `NoDocument`, whose text has the path of the URL only.
        """
        try:
            parts = urlsplit(url)
            is_local = self.allows_loopback and parts.hostname in LOOPBACK
        except ValueError as error:
            raise NoDocument("one of its addresses is not a URL") from error
        if parts.scheme != "https" and not is_local:
            raise NoDocument("one of its URLs is not HTTPS")
        http = BoundedHttp(
            min(self.left(), REQUEST_SECONDS), MAXIMUM_BYTES, lambda address: is_local or is_permitted(address)
        )
        try:
            status, body = http.answer(parts, headers={"accept": "application/json", **(headers or {})})
            if status != OK:
                raise NoDocument(f"status {status} at {shown(parts.path)}", status)
            document = json.loads(body)
        except (HTTPException, OSError, ValueError, RecursionError) as error:
            raise NoDocument(f"{type(error).__name__} at {shown(parts.path)}") from error
        if not isinstance(document, dict):
            raise NoDocument(f"no JSON object at {shown(parts.path)}")
        return document


def is_permitted(text: str) -> bool:
    """Return whether requests to an address are permitted: those to this machine and its link are not.

    At loopback and link-local addresses AWS gives the function its credentials. Private addresses are permitted, since
    an issuer may be in the company's network.
    """
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return not (address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified)
