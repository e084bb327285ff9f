"""The user of a verified token: authid, role, groups and end, as its claims and the issuer's settings give them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from signalbox.exchange.model.events import ADMINISTRATOR
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.topics import is_reserved
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.identity.trust import trust_of
from signalbox.live.rights.principals import MAXIMUM_LENGTH, canonical_name
from signalbox.sarracenia.rights.permissions import Role


def authid_of(name: str, issuer: Issuer, realm_issuers: Iterable[Issuer]) -> str | None:
    """Return the authid of a name that an issuer gives: `NAME` or `NAME@LABEL`; None if no user may have it.

    A name of the issuer without a label may not end like the names of one with a label. No user has the name of the
    administrators or of WAMP, in whose names the stage publishes.
    """
    canonical = canonical_name(name)
    authid = f"{canonical}@{issuer.label}" if issuer.label else canonical
    labels = {one.label for one in realm_issuers if one.label}
    is_foreign = not issuer.label and "@" in canonical and canonical.rpartition("@")[2] in labels
    is_of_stage = authid == ADMINISTRATOR or is_reserved(authid)
    return None if not canonical or is_foreign or is_of_stage or len(authid) > MAXIMUM_LENGTH else authid


MAXIMUM_GROUPS = 500
MAXIMUM_GROUPS_BYTES = 16_384  # all names together: they are part of the session's record
# A token never makes an administrator, and a feeder may publish for others.
ROLES = (Role.SOURCE, Role.SUBSCRIBER)  # the most powerful first
MAXIMUM_TIMESTAMP = 253_402_300_799  # 9999-12-31T23:59:59Z

Claims = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Refused(Exception):
    problem: TokenProblem


def user_of(
    claims: Claims, issuer: Issuer, realm_issuers: Sequence[Issuer], *, is_access_token: bool
) -> VerifiedToken | TokenRefusal:
    """Return the user of a token whose signature, times, issuer and audience were verified, or why it is refused."""
    try:
        _check_party(claims, issuer, is_access_token=is_access_token)
        _check_kind(claims)
        identity = TokenIdentity(
            issuer=issuer.url,
            role=_role(claims, issuer),
            groups=_groups(claims, issuer),
            expires_at=_time(claims["exp"]),
            skew_seconds=issuer.skew_seconds,
            trust=trust_of(issuer, realm_issuers),
        )
        issued_at = _time(claims["iat"]) if "iat" in claims else None
        return VerifiedToken(_authid(claims, issuer, realm_issuers), issuer.provider, identity, issued_at)
    except _Refused as refused:
        return TokenRefusal(refused.problem)


def _check_kind(claims: Claims) -> None:
    if "cnf" in claims:  # proof of possession, RFC 7800: without a check of the proof, it protects nothing
        raise _Refused(TokenProblem.BOUND)
    if "events" in claims:  # a logout or security event token, RFC 8417
        raise _Refused(TokenProblem.TYPE)


def _check_party(claims: Claims, issuer: Issuer, *, is_access_token: bool) -> None:
    """Check the authorized party (OpenID Connect Core, 3.1.3.7): it must be the realm's client or audience."""
    party, audience = claims.get("azp"), claims.get("aud")
    if party is None:
        # An ID token for several audiences names the one that may use it; access tokens name it in `client_id`.
        if isinstance(audience, list) and len(audience) > 1 and not is_access_token:
            raise _Refused(TokenProblem.PARTY)
    elif party not in (issuer.client, issuer.audience):
        raise _Refused(TokenProblem.PARTY)


def _authid(claims: Claims, issuer: Issuer, realm_issuers: Sequence[Issuer]) -> str:
    name = _claim(claims, issuer.name_claim)
    is_unverified = issuer.name_claim == "email" and claims.get("email_verified") is not True
    authid = authid_of(name, issuer, realm_issuers) if isinstance(name, str) and not is_unverified else None
    if authid is None:
        raise _Refused(TokenProblem.NAME)
    return authid


def _role(claims: Claims, issuer: Issuer) -> Role:
    given = set(_texts(claims, issuer.role_claim)) if issuer.role_claim else set()
    return next((role for role in ROLES if role.value in given), Role.SUBSCRIBER)


def _groups(claims: Claims, issuer: Issuer) -> tuple[str, ...]:
    distributed = claims.get("_claim_names")
    if isinstance(distributed, Mapping) and issuer.groups_claim in distributed:
        # The groups are too many for the token, and elsewhere: without them, the user would silently have fewer rights.
        raise _Refused(TokenProblem.GROUPS)
    groups = sorted({canonical_name(text) for text in _texts(claims, issuer.groups_claim) if text})
    is_too_long = any(len(group) > MAXIMUM_LENGTH for group in groups)
    if is_too_long or len(groups) > MAXIMUM_GROUPS or sum(map(len, groups)) > MAXIMUM_GROUPS_BYTES:
        raise _Refused(TokenProblem.GROUPS)
    return tuple(groups)


def _texts(claims: Claims, name: str) -> Iterator[str]:
    """Yield the texts of a claim that is absent, a text or a list of texts."""
    value = _claim(claims, name)
    for one in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(one, str):
            raise _Refused(TokenProblem.CLAIMS)
        yield one


def _claim(claims: Claims, name: str) -> object:
    """Return a claim by its name, or by a path such as `realm_access.roles`; None if it is absent."""
    if name in claims:
        return claims[name]
    found: object = claims
    for word in name.split("."):
        found = found.get(word) if isinstance(found, Mapping) else None
    return found


def _time(value: object) -> datetime:
    """Return the time of a NumericDate (RFC 7519, 2)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAXIMUM_TIMESTAMP:
        raise _Refused(TokenProblem.CLAIMS)
    return datetime.fromtimestamp(int(value), UTC)
