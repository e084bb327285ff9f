"""Users of an Arvados cluster, which verifies the tokens that it issued itself."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.records import LiveSettings
from signalbox.live.identity.tokens import CLUSTER, TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.sarracenia.rights.permissions import Role

# After this time the cluster verifies the token again. The bridge ends rights and memberships at once.
KEPT_FOR = timedelta(hours=1)
_UUID = "[a-z0-9]{5}-%s-[a-z0-9]{15}"
_TOKEN = re.compile("v2/" + _UUID % "gj3su" + "/[!-~]{1,200}|[a-z0-9]{40,60}")
_USER, _ANY = re.compile(_UUID % "tpzed"), re.compile(_UUID % "[a-z0-9]{5}")


@dataclass(frozen=True, slots=True)
class ClusterUser:
    """A user as the cluster describes the bearer of a token."""

    uuid: str
    is_active: bool


class ClusterUsers(Protocol):
    """The users of Arvados clusters."""

    def find(self, api: str, token: str) -> ClusterUser | TokenProblem:
        """Return the user of a token from the API at a URL, or why there is none."""


def is_cluster_token(text: str) -> bool:
    """Return whether a text has the form of a token that Arvados issues: `v2/UUID/SECRET`, or the secret alone."""
    return _TOKEN.fullmatch(text) is not None


def not_of_cluster(verified: VerifiedToken | TokenRefusal, live: LiveSettings) -> VerifiedToken | TokenRefusal:
    """Return an issuer's verified token, or its refusal in the realm of a cluster if it has names as the cluster has.

    Grants and groups of the realm give rights to these names, and many issuers let users choose their own.
    """
    if isinstance(verified, TokenRefusal) or not live.arvados_api:
        return verified
    names = (verified.authid, *verified.identity.groups)
    return TokenRefusal(TokenProblem.CLUSTER_NAME) if any(map(_ANY.fullmatch, names)) else verified


def verified_user(user: ClusterUser, *, api: str, now: datetime) -> VerifiedToken | TokenRefusal:
    """Return the user of the cluster with an API as the user of a verified token, or why the user may not join.

    The name is the user's uuid, and the groups are those of the stage, which the bridge keeps equal to what the user
    may read. So grants with `{user}` and `{group}` give each user the objects of their own and of these groups.
    The cluster does not say when it issued the token: a user whose session was killed joins again after `KEPT_FOR`.
    """
    if not user.is_active:
        return TokenRefusal(TokenProblem.INACTIVE)
    if _USER.fullmatch(user.uuid) is None:
        return TokenRefusal(TokenProblem.CLUSTER)
    identity = TokenIdentity(CLUSTER, Role.SUBSCRIBER, (), expires_at=now + KEPT_FOR, trust=api)
    return VerifiedToken(user.uuid, CLUSTER, identity, issued_at=now - KEPT_FOR)
