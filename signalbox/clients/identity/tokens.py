"""Which token a client presents to a realm, and when it must be renewed."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from signalbox.clients.identity.provider import InvalidProvider

SCOPE = "openid offline_access"
# A token is renewed this long before its end, but not before two thirds of its life have passed.
MARGIN_SECONDS = 120.0

TokenSource = Callable[[], str]
"""Returns a token that is not about to end. It may take a while, and raises what its provider's client raises."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The token of an issuer that a realm accepts: an ID token if the realm's audience is the client itself."""

    issuer: str
    client_id: str
    audience: str

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of an authorization request; providers ignore those that they do not know."""
        fields = {"client_id": self.client_id, "scope": SCOPE}
        if self.is_identity:
            return fields
        resource = {"resource": self.audience} if urlsplit(self.audience).scheme else {}  # RFC 8707, section 2
        return {**fields, "audience": self.audience, **resource}

    @property
    def is_identity(self) -> bool:
        """Return whether the token is an ID token, whose audience is the client (OpenID Connect Core, 2)."""
        return self.client_id == self.audience

    def token_of(self, answer: Mapping[str, Any]) -> str:
        """Return the token in an answer of the token endpoint. Raises `InvalidProvider` if it has none."""
        name = "id_token" if self.is_identity else "access_token"
        token = answer.get(name)
        if not isinstance(token, str):
            raise InvalidProvider(f"{self.issuer} answers without {name}")
        return token


def seconds_to_renewal(token: str, *, now: float) -> float | None:
    """Return the seconds until a token should be renewed; None for one whose lifetime is not readable.

    `now` is the time since the epoch. The result is at most the lifetime that the issuer has set, so a slow clock does
    not delay the renewal of a new token.
    """
    claims = claims_of(token)
    try:
        expires_at, issued_at = float(claims["exp"]), float(claims.get("iat", now))
    except (KeyError, TypeError, ValueError):
        return None
    life = expires_at - issued_at
    return min(expires_at - now, life) - min(MARGIN_SECONDS, life / 3)


def claims_of(token: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, unverified; empty for a token of another format. The router verifies tokens."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
