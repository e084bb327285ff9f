"""The denies of the stage's users in realms, for the control plane and the router of the exchange."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.errors import UnavailableError
from signalbox.exchange.model.denies import Denies, DenyReader, UserInRealm
from signalbox.exchange.model.patterns import MANY, ONE, WILDCARDS, Pattern
from signalbox.exchange.model.ports import Users
from signalbox.exchange.model.records import User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.ports import Grants, Groups
from signalbox.live.rights.grants import NO_GRANTS, NO_RIGHTS, GroupGrants, Rights
from signalbox.live.rights.principals import PrincipalName
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

KEPT_FOR = timedelta(seconds=30)  # a deny ends the copies for bound queues within a minute
MAXIMUM_USERS = 10_000
AT_ONCE = 100  # users between two looks at the time


class DeniesUnread(UnavailableError):
    """Raised when an invocation has no time for the denies of all users; the next one continues with the others."""


@dataclass(frozen=True, slots=True)
class UserDenies:
    """`Denies` of one user in one realm."""

    rights: Rights

    def match(self, right: Right, key: RoutingKey) -> bool:
        """Return whether a deny removes a right to a topic."""
        return self.rights.is_denied(right, key)

    def cover(self, right: Right, pattern: Pattern) -> bool:
        """Return whether a deny removes the right to every topic that a binding's pattern matches."""
        return self.rights.denies_all(right, _widened(pattern))


@dataclass(frozen=True, slots=True)
class StoredDenies:
    """`DenyReader` that reads at each call. A realm costs two reads, and a user in all realms with denies one.

    A user's groups are read in each of these, and own denies in those whose grantee the user is.
    """

    users: Users
    grants: Grants
    groups: Groups
    parallel_map: ParallelMap = serial_map

    def of(self, users: Collection[UserInRealm]) -> Mapping[UserInRealm, Denies]:
        """Return the denies by user; a user without denies is left out."""
        realms = list(dict.fromkeys(realm for realm, _ in users))
        known = dict(zip(realms, self.parallel_map(self._realm, realms), strict=True))
        asked = [one for one in users if known[one[0]].may_deny(one[1])]
        stored = self.users.find_all({user for _, user in asked})
        found = self.parallel_map(lambda one: self._rights(*one, known[one[0]], stored.get(one[1])), asked)
        return {one: UserDenies(rights) for one, rights in zip(asked, found, strict=True) if any(rights.every_deny)}

    def _realm(self, realm: ExchangeName) -> "_RealmGrants":
        return _RealmGrants(frozenset(self.grants.grantees(realm)), self.grants.of_groups(realm))

    def _rights(self, realm: ExchangeName, name: UserName, known: "_RealmGrants", user: User | None) -> Rights:
        if user is None:
            return NO_RIGHTS
        is_grantee = name in known.grantees
        return Rights.in_realm(
            realm,
            user=name,
            role=user.role,
            ownership=user.ownership,
            grants=self.grants.find(realm, PrincipalName(name)).granted if is_grantee else NO_GRANTS,
            groups=self.groups.of_user(realm, name),
            group_grants=known.group_grants,
        )


@dataclass(frozen=True, slots=True)
class _RealmGrants:
    """The users with grants or denies of their own in a realm, and the grants and denies of its groups."""

    grantees: frozenset[UserName]
    group_grants: GroupGrants

    def may_deny(self, user: UserName) -> bool:
        return user in self.grantees or any(one.denies for one in self.group_grants.by_principal.values())


@dataclass(slots=True)
class CachedDenies:
    """`DenyReader` that keeps for half a minute what it has read, for the router.

    A function that is killed for its time would lose that with its memory, so when it `is_late`, it stops by itself.
    """

    reader: DenyReader
    now: Callable[[], datetime]
    is_late: Callable[[], bool]
    _read: dict[UserInRealm, tuple[datetime, Denies | None]] = field(default_factory=dict)

    def of(self, users: Collection[UserInRealm]) -> Mapping[UserInRealm, Denies]:
        """Return the denies by user; a user without denies is left out. Raises `DeniesUnread`."""
        now = self.now()
        oldest = now - KEPT_FOR
        stale = [one for one in users if one not in self._read or self._read[one][0] <= oldest]
        if len(self._read) + len(stale) > MAXIMUM_USERS:
            self._read = {one: self._read[one] for one in users if one in self._read}
        for start in range(0, len(stale), AT_ONCE):
            if start and self.is_late():
                raise DeniesUnread(f"the denies of {len(stale) - start} of {len(users)} users are not read yet")
            part = stale[start : start + AT_ONCE]
            found = self.reader.of(part)
            self._read |= {one: (now, found.get(one)) for one in part}
        known = ((one, self._read[one][1]) for one in users)
        return {one: denies for one, denies in known if denies is not None}


def _widened(pattern: Pattern) -> TopicPattern:
    """Return a pattern of WAMP that matches every topic that a binding's pattern matches, and perhaps more."""
    if MANY not in pattern.words:
        match = MatchPolicy.WILDCARD if WILDCARDS.intersection(pattern.words) else MatchPolicy.EXACT
        return TopicPattern(match, ".".join("" if word == ONE else word for word in pattern.words))
    first = next(number for number, word in enumerate(pattern.words) if word in WILDCARDS)
    return TopicPattern(MatchPolicy.PREFIX, ".".join(pattern.words[:first]))
