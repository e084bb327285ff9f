"""Verification of tokens with PyJWT, which is imported with the first token: most functions never see one.

PyJWT checks the signature, `exp`, `nbf`, `iat`, `iss` and `aud`; `signalbox.live.identity` checks the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from signalbox.aws.live.issuers import IssuerKeys, Key
from signalbox.exchange.model.issuers import Issuer
from signalbox.live.identity.claims import user_of
from signalbox.live.identity.compact import ALGORITHMS, UnverifiedToken, read_unverified
from signalbox.live.identity.tokens import TokenProblem, TokenRefusal, VerifiedToken

MAXIMUM_CANDIDATES = 5  # of the keys that a token without a key id may be signed with


@dataclass(frozen=True, slots=True)
class JwtVerifier:
    """`TokenVerifier` with PyJWT and the keys that issuers publish."""

    keys: IssuerKeys

    def verify(self, token: str, issuers: Sequence[Issuer]) -> VerifiedToken | TokenRefusal:
        """Return the verified token, or why it is refused."""
        said = read_unverified(token)
        if isinstance(said, TokenProblem):
            return TokenRefusal(said)
        issuer = next((one for one in issuers if one.url == said.issuer), None)
        if issuer is None:
            return TokenRefusal(TokenProblem.ISSUER)
        published = self.keys.find(issuer.url, said.key_id)
        if published is None:
            return TokenRefusal(TokenProblem.UNAVAILABLE)
        claims = _verified_claims(token, said, issuer, published)
        if isinstance(claims, TokenProblem):
            return TokenRefusal(claims)
        return user_of(claims, issuer, issuers, is_access_token=said.is_access_token)


def _verified_claims(
    token: str, said: UnverifiedToken, issuer: Issuer, published: Sequence[Key]
) -> Mapping[str, Any] | TokenProblem:
    """Return the claims of a token that one of the published keys has signed."""
    import jwt  # noqa: PLC0415 - with cryptography, it takes longer to import than everything else of the function

    problem = TokenProblem.KEY
    for key in _candidates(said, published):
        try:
            return jwt.decode(
                token,
                jwt.PyJWK(dict(key), algorithm=said.algorithm),
                algorithms=[said.algorithm],
                audience=issuer.audience,
                issuer=issuer.url,
                leeway=issuer.skew_seconds,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
        except jwt.PyJWTError as error:
            problem = next(found for kind, found in _problems() if isinstance(error, kind))
        if problem not in (TokenProblem.KEY, TokenProblem.SIGNATURE):
            return problem
    return problem


def _candidates(said: UnverifiedToken, published: Sequence[Key]) -> Iterator[Key]:
    """Yield the published keys that may have signed a token: by key id, use, type, curve and algorithm."""
    fitting = (key for key in published if _may_sign(key, said))
    for _, key in zip(range(MAXIMUM_CANDIDATES), fitting, strict=False):
        yield key


def _may_sign(key: Key, said: UnverifiedToken) -> bool:
    key_type, curve = ALGORITHMS[said.algorithm]
    return (
        said.key_id in (None, key.get("kid", said.key_id))
        and key.get("kty") == key_type
        and key.get("crv") == curve
        and key.get("use", "sig") == "sig"
        and key.get("alg", said.algorithm) == said.algorithm
        and "d" not in key  # a published private key proves nothing
    )


@cache
def _problems() -> tuple[tuple[type[Exception], TokenProblem], ...]:
    """Return the problem of each exception of PyJWT; subclasses come first."""
    import jwt  # noqa: PLC0415 - as above

    return (
        (jwt.ExpiredSignatureError, TokenProblem.EXPIRED),
        (jwt.ImmatureSignatureError, TokenProblem.EARLY),
        (jwt.InvalidAudienceError, TokenProblem.AUDIENCE),
        (jwt.InvalidIssuerError, TokenProblem.ISSUER),
        (jwt.InvalidSignatureError, TokenProblem.SIGNATURE),
        (jwt.InvalidAlgorithmError, TokenProblem.ALGORITHM),
        (jwt.InvalidKeyError, TokenProblem.KEY),
        (jwt.PyJWKError, TokenProblem.KEY),
        (jwt.PyJWTError, TokenProblem.CLAIMS),
    )
