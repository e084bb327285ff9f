"""The rights of users in realms: by their roles on the exchange, by grants of topic patterns, and less denies."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

from signalbox.exchange.model.topics import RoutingKey, is_reserved
from signalbox.live.rights.coverage import beginning, covers, matches
from signalbox.live.rights.pattern_index import Entry, PatternIndex
from signalbox.live.rights.principals import EVERYONE, NOBODY, GroupName, PrincipalName, Subject, principal_of
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted, role_rights


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to the topics of a realm that a pattern matches: to subscribe (`READ`) or to publish (`WRITE`).

    As a deny it removes that right.
    """

    right: Right
    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class GrantSet:
    """The grants and the denies of one principal in a realm."""

    grants: tuple[Grant, ...] = ()
    denies: tuple[Grant, ...] = ()


NO_GRANTS = GrantSet()
Kind = tuple[Right, bool]
"""A right, and whether it is denied."""


@dataclass(frozen=True, slots=True)
class GroupGrants:
    """The grants and denies of all groups of a realm; `version` grows with every change and is 0 before the first."""

    version: int = 0
    by_principal: Mapping[PrincipalName, GrantSet] = field(default_factory=lambda: MappingProxyType({}))
    _indexes: dict[Kind, PatternIndex[PrincipalName]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def of(self, groups: Collection[GroupName], *, is_anonymous: bool) -> Iterator[tuple[PrincipalName, GrantSet]]:
        """Yield the principals with grants or denies that concern a session of these groups."""
        if not self.by_principal:
            return
        names = [principal_of(group) for group in groups]
        for name in names if is_anonymous else [EVERYONE, *names]:
            if name in self.by_principal:
                yield name, self.by_principal[name]

    @property
    def size(self) -> int:
        """Return the size in memory: one for the realm, and one for each group, grant and deny."""
        return 1 + sum(1 + len(one.grants) + len(one.denies) for one in self.by_principal.values())

    def index(self, kind: Kind) -> PatternIndex[PrincipalName]:
        """Return the index of the patterns of one kind; it is made once for all sessions of the realm."""
        if kind not in self._indexes:
            right, is_deny = kind
            made: PatternIndex[PrincipalName] = PatternIndex()
            for principal, granted in self.by_principal.items():
                for one in granted.denies if is_deny else granted.grants:
                    if one.right is right:
                        made.add(one.pattern, principal)
            self._indexes[kind] = made
        return self._indexes[kind]


NO_GROUP_GRANTS = GroupGrants()


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a user in a realm: `role_rights` apply to all topics, grants to some; a deny wins over both.

    WAMP's own topics and procedures are open to administrators, and to users with a grant whose pattern is in WAMP's
    namespace. `subject` has the words that placeholders in the patterns represent. An `is_anonymous` session joined
    without a secret. `grants` and `denies` are the user's own; `principals` are the groups with others, in `groups`.
    """

    role_rights: frozenset[Right]
    grants: tuple[Grant, ...]
    is_admin: bool = False
    denies: tuple[Grant, ...] = ()
    subject: Subject = NOBODY
    is_anonymous: bool = False
    groups: GroupGrants = NO_GROUP_GRANTS
    principals: frozenset[PrincipalName] = frozenset()

    @classmethod
    def in_realm(
        cls,
        realm: ExchangeName,
        *,
        user: UserName,
        role: Role,
        ownership: Ownership,
        grants: GrantSet | Iterable[Grant] = NO_GRANTS,
        groups: Collection[GroupName] = (),
        group_grants: GroupGrants = NO_GROUP_GRANTS,
        is_anonymous: bool = False,
    ) -> "Rights":
        """Return the rights of a user of the stage in a realm, given its own grants and groups there, and all groups'.

        A session without a secret (`is_anonymous`) is not of `@everyone`.
        """
        by_role = (right for right in Right if is_permitted(user, role, right, name=realm, ownership=ownership))
        found = cls._granted(frozenset(by_role), grants, groups, group_grants, user, is_anonymous=is_anonymous)
        return replace(found, is_admin=role is Role.ADMIN, is_anonymous=is_anonymous)

    @classmethod
    def of_token(
        cls,
        realm: ExchangeName,
        *,
        user: UserName,
        role: Role,
        grants: GrantSet | Iterable[Grant] = NO_GRANTS,
        groups: Collection[GroupName] = (),
        group_grants: GroupGrants = NO_GROUP_GRANTS,
    ) -> "Rights":
        """Return the rights of a token's user, who owns no exchange by name and is never an administrator."""
        return cls._granted(role_rights(role, realm), grants, groups, group_grants, user)

    @classmethod
    def _granted(
        cls,
        by_role: frozenset[Right],
        own: GrantSet | Iterable[Grant],
        groups: Collection[GroupName],
        group_grants: GroupGrants,
        user: UserName,
        *,
        is_anonymous: bool = False,
    ) -> "Rights":
        first = own if isinstance(own, GrantSet) else GrantSet(tuple(own))
        principals = frozenset(name for name, _ in group_grants.of(groups, is_anonymous=is_anonymous))
        shared = group_grants if principals else NO_GROUP_GRANTS
        return cls(
            by_role,
            first.grants,
            denies=first.denies,
            subject=Subject.of(user, groups),
            groups=shared,
            principals=principals,
        )

    @property
    def are_any(self) -> bool:
        """Return whether the user has any right, and so may join."""
        return bool(self.role_rights or self.grants or any(one.grants for one in self._of_groups()))

    @property
    def every_grant(self) -> Iterator[Grant]:
        """Yield the grants of the user and of its groups."""
        return chain(self.grants, *(one.grants for one in self._of_groups()))

    @property
    def every_deny(self) -> Iterator[Grant]:
        """Yield the denies of the user and of its groups."""
        return chain(self.denies, *(one.denies for one in self._of_groups()))

    @property
    def reads_realm(self) -> bool:
        """Return whether the user's role reads every topic: no grant adds this, and each deny of reading ends it."""
        is_denied = any(deny.right is Right.READ for deny in self.every_deny)
        return Right.READ in self.role_rights and not self.is_anonymous and not is_denied

    def may_subscribe(self, pattern: TopicPattern) -> bool:
        """Return whether the user may subscribe to a pattern.

        The role or a single grant must cover every topic that the pattern can match, and no single deny may. Events of
        topics that a deny matches are left out one by one (`may_receive`).
        """
        if not self._is_open(Right.READ, pattern.uri) and not self._is_covered(pattern):
            return False
        return not self.denies_all(Right.READ, pattern)

    def denies_all(self, right: Right, pattern: TopicPattern) -> bool:
        """Return whether a deny removes a right to every topic that a pattern can match."""
        return any(True for _ in self._covering((right, True), pattern))

    def may_receive(self, topic: RoutingKey) -> bool:
        """Return whether the user may receive a topic's events; a subscribed prefix may match WAMP's topics, too."""
        return self._may(Right.READ, topic)

    def readable_beginnings(self, prefix: str) -> list[str]:
        """Return the beginnings of the topics with a prefix that the user may receive, sorted; none begins another."""
        own = (beginning(grant.pattern) for grant in self.every_grant if grant.right is Right.READ)
        every = [prefix] if Right.READ in self.role_rights else own
        longer = sorted({max(one, prefix) for one in every if one.startswith(prefix) or prefix.startswith(one)})
        found: list[str] = []
        for one in longer:
            if not found or not one.startswith(found[-1]):
                found.append(one)
        return found

    def may_publish(self, topic: RoutingKey) -> bool:
        """Return whether the user may publish to a topic."""
        return self._may(Right.WRITE, topic)

    def may_administer(self, procedure: str) -> bool:
        """Return whether the user may call a procedure that shows other sessions or ends them."""
        topic = RoutingKey(procedure)
        return (self.is_admin and not self.is_denied(Right.READ, topic)) or self._may(Right.READ, topic)

    def is_denied(self, right: Right, topic: RoutingKey) -> bool:
        """Return whether a deny removes a right to a topic."""
        return any(True for _ in self._matching((right, True), topic))

    def _may(self, right: Right, topic: RoutingKey) -> bool:
        is_permitted = self._is_open(right, topic) or self._is_granted(right, topic)
        return is_permitted and not self.is_denied(right, topic)

    def _is_open(self, right: Right, uri: str) -> bool:
        """Return whether the role permits a topic or a pattern."""
        return right in self.role_rights and (self.is_admin or not is_reserved(uri))

    def _is_granted(self, right: Right, topic: RoutingKey) -> bool:
        is_own = is_reserved(topic)
        return any(not is_own or is_reserved(one.uri) for one in self._matching((right, False), topic))

    def _is_covered(self, pattern: TopicPattern) -> bool:
        is_own = is_reserved(pattern.uri)
        return any(not is_own or is_reserved(one.uri) for one in self._covering((Right.READ, False), pattern))

    def _matching(self, kind: Kind, topic: RoutingKey) -> Iterator[TopicPattern]:
        """Yield the patterns of a kind, of the user and of its groups, that match a topic."""
        yield from (one for one in self._own(kind) if matches(one, topic, self.subject))
        if self.principals:
            yield from self._shared(self.groups.index(kind).matching(topic, self.subject))

    def _covering(self, kind: Kind, pattern: TopicPattern) -> Iterator[TopicPattern]:
        """Yield the patterns of a kind, of the user and of its groups, that cover a subscription's pattern."""
        yield from (one for one in self._own(kind) if covers(one, pattern, self.subject))
        if self.principals:
            yield from self._shared(self.groups.index(kind).covering(pattern, self.subject))

    def _own(self, kind: Kind) -> Iterator[TopicPattern]:
        right, is_deny = kind
        return (one.pattern for one in (self.denies if is_deny else self.grants) if one.right is right)

    def _of_groups(self) -> Iterator[GrantSet]:
        return (self.groups.by_principal[name] for name in self.principals)

    def _shared(self, entries: Iterable[Entry[PrincipalName]]) -> Iterator[TopicPattern]:
        """Yield the patterns of those entries that are of the user's groups."""
        return (one.pattern for one in entries if not self.principals.isdisjoint(one.values))


NO_RIGHTS = Rights(frozenset(), ())


def revoked(subscriptions: Iterable[TopicPattern], rights: Rights) -> list[TopicPattern]:
    """Return the subscriptions that these rights do not cover."""
    return [pattern for pattern in subscriptions if not rights.may_subscribe(pattern)]
