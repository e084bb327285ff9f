"""The rights of users in realms: by their roles on the exchange, by grants of topic patterns, and less denies."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from signalbox.exchange.model.topics import RoutingKey, is_reserved
from signalbox.live.rights.coverage import beginning, covers, matches
from signalbox.live.rights.principals import EVERYONE, NOBODY, GroupName, PrincipalName, Subject, principal_of
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted, role_rights


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to the topics of a realm that a pattern matches: to subscribe (`READ`) or to publish (`WRITE`).

    As a deny it takes the right away.
    """

    right: Right
    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class GrantSet:
    """The grants and the denies of one principal in a realm."""

    grants: tuple[Grant, ...] = ()
    denies: tuple[Grant, ...] = ()


NO_GRANTS = GrantSet()


@dataclass(frozen=True, slots=True)
class GroupGrants:
    """The grants and denies of all groups of a realm; `version` grows with every change and is 0 before the first."""

    version: int = 0
    by_principal: Mapping[PrincipalName, GrantSet] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, groups: Collection[GroupName], *, is_anonymous: bool) -> Iterator[tuple[PrincipalName, GrantSet]]:
        """Yield the principals with grants or denies that concern a session of these groups."""
        if not self.by_principal:
            return
        names = [principal_of(group) for group in groups]
        for name in names if is_anonymous else [EVERYONE, *names]:
            if name in self.by_principal:
                yield name, self.by_principal[name]


NO_GROUP_GRANTS = GroupGrants()


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a user in a realm: `role_rights` apply to all topics, grants to some; a deny wins over both.

    WAMP's own topics and procedures are open to administrators, and to users with a grant whose pattern is in WAMP's
    namespace. `subject` has the words that placeholders in the patterns represent. An `is_anonymous` session joined
    without a secret.
    """

    role_rights: frozenset[Right]
    grants: tuple[Grant, ...]
    is_admin: bool = False
    denies: tuple[Grant, ...] = ()
    subject: Subject = NOBODY
    is_anonymous: bool = False

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
        sets = group_grants.of(groups, is_anonymous=is_anonymous)
        found = cls._granted(frozenset(by_role), grants, sets, Subject.of(user, groups))
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
        sets = group_grants.of(groups, is_anonymous=False)
        return cls._granted(role_rights(role, realm), grants, sets, Subject.of(user, groups))

    @classmethod
    def _granted(
        cls,
        by_role: frozenset[Right],
        own: GrantSet | Iterable[Grant],
        others: Iterable[tuple[PrincipalName, GrantSet]],
        subject: Subject,
    ) -> "Rights":
        first = own if isinstance(own, GrantSet) else GrantSet(tuple(own))
        sets = [first, *(one for _, one in others)]
        grants, denies = (grant for one in sets for grant in one.grants), (deny for one in sets for deny in one.denies)
        return cls(by_role, tuple(grants), denies=tuple(denies), subject=subject)

    @property
    def are_any(self) -> bool:
        """Return whether the user has any right, and so may join."""
        return bool(self.role_rights or self.grants)

    @property
    def reads_realm(self) -> bool:
        """Return whether the user's role reads every topic: no grant adds this, and each deny of reading ends it."""
        is_denied = any(deny.right is Right.READ for deny in self.denies)
        return Right.READ in self.role_rights and not self.is_anonymous and not is_denied

    def may_subscribe(self, pattern: TopicPattern) -> bool:
        """Return whether the user may subscribe to a pattern.

        The role or a single grant must cover every topic that the pattern can match, and no single deny may. Events of
        topics that a deny matches are left out one by one (`may_receive`).
        """
        if not self._is_open(Right.READ, pattern.uri) and not self._is_covered(pattern):
            return False
        return not any(deny.right is Right.READ and covers(deny.pattern, pattern, self.subject) for deny in self.denies)

    def may_receive(self, topic: RoutingKey) -> bool:
        """Return whether the user may receive a topic's events; a subscribed prefix may match WAMP's topics, too."""
        return self._may(Right.READ, topic)

    def readable_beginnings(self, prefix: str) -> list[str]:
        """Return the beginnings of the topics with a prefix that the user may receive, sorted; none begins another."""
        own = (beginning(grant.pattern) for grant in self.grants if grant.right is Right.READ)
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
        """Return whether a deny takes a right to a topic away."""
        return any(deny.right is right and matches(deny.pattern, topic, self.subject) for deny in self.denies)

    def _may(self, right: Right, topic: RoutingKey) -> bool:
        is_permitted = self._is_open(right, topic) or self._is_granted(right, topic)
        return is_permitted and not (self.denies and self.is_denied(right, topic))

    def _is_open(self, right: Right, uri: str) -> bool:
        """Return whether the role permits a topic or a pattern."""
        return right in self.role_rights and (self.is_admin or not is_reserved(uri))

    def _is_granted(self, right: Right, topic: RoutingKey) -> bool:
        is_own, subject = is_reserved(topic), self.subject
        for grant in self.grants:
            if (
                grant.right is right
                and matches(grant.pattern, topic, subject)
                and (not is_own or is_reserved(grant.pattern.uri))
            ):
                return True
        return False

    def _is_covered(self, pattern: TopicPattern) -> bool:
        is_own = is_reserved(pattern.uri)
        return any(
            grant.right is Right.READ
            and covers(grant.pattern, pattern, self.subject)
            and (not is_own or is_reserved(grant.pattern.uri))
            for grant in self.grants
        )


NO_RIGHTS = Rights(frozenset(), ())


def revoked(subscriptions: Iterable[TopicPattern], rights: Rights) -> list[TopicPattern]:
    """Return the subscriptions that these rights do not cover."""
    return [pattern for pattern in subscriptions if not rights.may_subscribe(pattern)]
