"""The compact serialization of a JWT, read before its signature is verified: it only selects the issuer and the key."""

import base64
import binascii
import json
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signalbox.live.identity.tokens import TokenProblem

MAXIMUM_TOKEN_LENGTH = 16_384
# Asymmetric algorithms only (RFC 8725, 3.2), with the type and the curve of their keys. `HS256` would accept a token
# that its sender signed with the issuer's public key as the secret, and `none` any token.
ALGORITHMS: Mapping[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
# These hold a key, or extensions that a recipient must understand (RFC 7515, 4.1).
REFUSED_HEADERS = frozenset({"crit", "jwk", "jku", "x5u", "x5c", "b64", "zip"})
ACCESS_TOKEN = "at+jwt"  # noqa: S105 - a media type, RFC 9068
TYPES = frozenset({"jwt", ACCESS_TOKEN})
SIGNED_PARTS, ENCRYPTED_PARTS = 3, 5
BASE64URL = frozenset(string.ascii_letters + string.digits + "-_")


@dataclass(frozen=True, slots=True)
class UnverifiedToken:
    """What a token says of itself: its issuer, and the algorithm and key of its signature."""

    issuer: str
    algorithm: str
    key_id: str | None
    is_access_token: bool


def is_compact_jwt(text: str) -> bool:
    """Return whether a ticket has the form of a JWT. Secrets of users do not: they have no dots."""
    return text.startswith("eyJ") and text.count(".") in (SIGNED_PARTS - 1, ENCRYPTED_PARTS - 1)


def read_unverified(text: str) -> UnverifiedToken | TokenProblem:
    """Return the issuer, algorithm and key that a token names, or why no key could make it valid."""
    parts = text.split(".")
    if len(text) > MAXIMUM_TOKEN_LENGTH:
        return TokenProblem.TOO_LONG
    if len(parts) == ENCRYPTED_PARTS:
        return TokenProblem.ENCRYPTED
    header = _document(parts[0])
    claims = _document(parts[1]) if len(parts) == SIGNED_PARTS else None
    if header is None or claims is None or not BASE64URL.issuperset(parts[-1]):
        return TokenProblem.MALFORMED
    problem = _header_problem(header)
    if problem is not None:
        return problem
    issuer = claims.get("iss")
    if not isinstance(issuer, str):
        return TokenProblem.CLAIMS
    return UnverifiedToken(issuer, header["alg"], header.get("kid"), _type(header) == ACCESS_TOKEN)


def _header_problem(header: Mapping[str, Any]) -> TokenProblem | None:
    if not REFUSED_HEADERS.isdisjoint(header):
        return TokenProblem.HEADER
    if _type(header) not in TYPES:
        return TokenProblem.TYPE
    if not isinstance(header.get("alg"), str) or header["alg"] not in ALGORITHMS:
        return TokenProblem.ALGORITHM
    return None if isinstance(header.get("kid", ""), str) else TokenProblem.MALFORMED


def _type(header: Mapping[str, Any]) -> str:
    return str(header.get("typ", "JWT")).lower().removeprefix("application/")


def _document(part: str) -> Mapping[str, Any] | None:
    try:
        document = json.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
