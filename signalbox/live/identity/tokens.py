"""Verified tokens, the part of them that sessions keep, and the reasons why tokens are refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from signalbox.exchange.model.issuers import Issuer
from signalbox.sarracenia.rights.permissions import Role

CLUSTER = "arvados"  # the issuer and the provider of users whose token an Arvados cluster has verified


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """The part of a user's token that the session keeps.

    `issuer` is the issuer's URL, or `CLUSTER`; `groups` are sorted, and `expires_at` is the token's `exp`. `trust`
    identifies the settings that it was verified by: the result of `trust_of`, or the URL of the cluster's API. The
    token itself is not stored.
    """

    issuer: str
    role: Role
    groups: tuple[str, ...]
    expires_at: datetime
    skew_seconds: int = 0
    trust: str = ""

    @property
    def ends_at(self) -> datetime:
        """Return when the token is over by our clock: after its expiry and the issuer's clock skew."""
        return self.expires_at + timedelta(seconds=self.skew_seconds)

    def is_over(self, now: datetime) -> bool:
        """Return whether the token has ended."""
        return now >= self.ends_at


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """A token that one of the realm's issuers has signed for its audience, and that is valid now.

    `provider` is WAMP's `authprovider`. `issued_at` is None for a token without `iat`.
    """

    authid: str
    provider: str
    identity: TokenIdentity
    issued_at: datetime | None = None


class TokenProblem(Enum):
    """Why a token is refused: a word for the history, and a text for its sender. Neither holds a claim's value."""

    MALFORMED = "malformed", "the token is not a signed JWT in compact form"
    TOO_LONG = "too_long", "the token is longer than 16 KB"
    ENCRYPTED = "encrypted", "encrypted tokens are not supported"
    HEADER = "header", "the token's header has a key, or a critical extension that is not supported"
    TYPE = "type", "the token is neither an ID token nor an access token"
    ALGORITHM = "algorithm", "the token's algorithm is not one of the asymmetric ones that are accepted"
    ISSUER = "issuer", "the token's issuer is not one of this realm's"
    KEY = "key", "the token's key is not one that the issuer publishes"
    SIGNATURE = "signature", "the token's signature does not match"
    AUDIENCE = "audience", "the token is for another audience"
    PARTY = "party", "the token was issued to another client (azp)"
    EXPIRED = "expired", "the token has expired"
    EARLY = "early", "the token is not valid yet"
    CLAIMS = "claims", "a claim of the token is missing or has the wrong type"
    NAME = "name", "the claim of the user's name is missing, too long or not verified"
    GROUPS = "groups", "the token has too many groups, or a group's name is too long"
    LATE = "late", "the session's own token is over, or within seconds: join again"
    BOUND = "bound", "the token is bound to a key of its client, which cannot be checked here"
    ENDED = "ended", "a session of this user was ended after the token was issued: sign in again"
    AUTHID = "authid", "the token is another user's than the authid"
    STAGE_USER = "stage_user", "the name of the token's user is the name of a user of the stage"
    CLUSTER = "cluster", "the Arvados cluster does not accept the token"
    CLUSTER_NAME = "cluster_name", "a name or a group of the token is like those of the realm's Arvados cluster"
    INACTIVE = "inactive", "the token's user is not active in the Arvados cluster"
    CLUSTER_AWAY = "cluster_away", "the Arvados cluster does not answer: try again"
    UNAVAILABLE = "unavailable", "the issuer does not answer, and its keys are not known: try again"

    def __init__(self, word: str, text: str) -> None:
        self.word = word
        self.text = text


@dataclass(frozen=True, slots=True)
class TokenRefusal:
    """The refusal of a token."""

    problem: TokenProblem


class TokenVerifier(Protocol):
    """Verifies tokens against the issuers of a realm."""

    def verify(self, token: str, issuers: Sequence[Issuer]) -> VerifiedToken | TokenRefusal:
        """Return the verified token, or why it is refused. Issuers that do not answer are a refusal, too."""
