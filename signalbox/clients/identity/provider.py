"""The endpoints of an OpenID provider: discovery, and requests for tokens."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.model.issuers import LOOPBACK

DISCOVERY = "/.well-known/openid-configuration"
TIMEOUT_SECONDS = 20.0
MAXIMUM_BYTES = 1_000_000


class ProviderUnavailable(UnavailableError):
    """Raised when an identity provider, or the live page with a realm's issuers, cannot be reached or fails."""


class SignInRefused(RejectedError):
    """Raised when an identity provider refuses a sign-in or its renewal; the text says what to do."""


class InvalidProvider(RejectedError):
    """Raised when a URL is not that of an identity provider, or when the provider lacks a needed endpoint."""


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error of an OAuth endpoint (RFC 6749, 5.2)."""

    code: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID provider: its issuer, and its endpoints by their names in the discovery document."""

    issuer: str
    endpoints: Mapping[str, str] = field(repr=False)

    @classmethod
    def discover(cls, issuer: str) -> "Provider":
        """Return the provider of an issuer's URL. Raises `ProviderUnavailable` and `InvalidProvider`."""
        document = fetch_json(issuer.rstrip("/") + DISCOVERY)
        if document.get("issuer") != issuer:
            # OpenID Connect Discovery 1.0, 4.3: otherwise another provider could be impersonated.
            raise InvalidProvider(f"{issuer} describes the issuer {document.get('issuer')!r}: give exactly its URL")
        return cls(issuer, {name: value for name, value in document.items() if isinstance(value, str)})

    def request(self, endpoint: str, fields: Mapping[str, str]) -> dict[str, Any] | ErrorAnswer:
        """Send a form to an endpoint; return its answer.

        Raises `ProviderUnavailable`, and `InvalidProvider` for a provider without the endpoint.
        """
        url = self.endpoints.get(endpoint)
        if url is None:
            raise InvalidProvider(f"{self.issuer} has no {endpoint}: it does not support this way to sign in")
        return _answer(url, urlencode(fields).encode())


def fetch_json(url: str) -> dict[str, Any]:
    """Return the JSON object at a URL. Raises `ProviderUnavailable` and `InvalidProvider`."""
    answer = _answer(url)
    if isinstance(answer, ErrorAnswer):
        raise InvalidProvider(f"{url} answers {answer.code}: is the address right?")
    return answer


class _NoRedirects(HTTPRedirectHandler):
    """Redirects are answers: one may lead from https to http, or to another host with what was sent."""

    def redirect_request(self, *_: object) -> None:
        """Follow no redirect."""


def _answer(url: str, body: bytes | None = None) -> dict[str, Any] | ErrorAnswer:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise InvalidProvider(f"{url!r} is not an https URL: tokens are only sent encrypted")
    request = Request(url, body, {"Accept": "application/json"})  # noqa: S310 - the scheme is checked above
    try:
        with build_opener(_NoRedirects).open(request, timeout=TIMEOUT_SECONDS) as response:
            return _document(url, response.read(MAXIMUM_BYTES))
    except HTTPError as error:
        return _error(url, error)
    except (URLError, OSError) as error:
        raise ProviderUnavailable(f"{url} does not answer: {getattr(error, 'reason', error)}") from error


def _error(url: str, error: HTTPError) -> ErrorAnswer:
    if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code == HTTPStatus.TOO_MANY_REQUESTS:
        raise ProviderUnavailable(f"{url} answers {error.code}") from error
    try:
        document = _document(url, error.read(MAXIMUM_BYTES))
    except InvalidProvider:
        document = {}
    return ErrorAnswer(str(document.get("error", error.code)), str(document.get("error_description", "")))


def _document(url: str, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body) if body else {}  # the answer to a revocation is empty
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise InvalidProvider(f"{url} does not answer with a JSON object: is the address right?")
    return document
