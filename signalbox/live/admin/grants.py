"""The rights of users in realms: by their roles on the exchange, and by grants of topic patterns."""

from collections.abc import Iterable
from dataclasses import dataclass

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import is_reserved
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted, role_rights


@dataclass(frozen=True, slots=True)
class Grant:
    """A user's right to the topics of a realm that a pattern matches: to subscribe (`READ`) or to publish (`WRITE`)."""

    right: Right
    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a user in a realm: `role_rights` apply to all topics, grants to some.

    WAMP's own topics and procedures are open to administrators, and to users with a grant whose pattern is in WAMP's
    namespace.
    """

    role_rights: frozenset[Right]
    grants: tuple[Grant, ...]
    is_admin: bool = False

    @classmethod
    def in_realm(
        cls, realm: ExchangeName, *, user: UserName, role: Role, ownership: Ownership, grants: Iterable[Grant]
    ) -> "Rights":
        """Return the rights of a user in a realm, given the user's grants there."""
        by_role = (right for right in Right if is_permitted(user, role, right, name=realm, ownership=ownership))
        return cls(frozenset(by_role), tuple(grants), is_admin=role is Role.ADMIN)

    @classmethod
    def of_token(cls, realm: ExchangeName, *, role: Role, grants: Iterable[Grant]) -> "Rights":
        """Return the rights of a token's user, who owns no exchange by name and is never an administrator."""
        return cls(role_rights(role, realm), tuple(grants))

    @property
    def are_any(self) -> bool:
        """Return whether the user has any right, and so may join."""
        return bool(self.role_rights or self.grants)

    def may_subscribe(self, pattern: TopicPattern) -> bool:
        """Return whether the user may receive every topic that a pattern can match; a single grant must cover it."""
        is_own = is_reserved(pattern.uri)
        if Right.READ in self.role_rights and self._is_open(is_own=is_own):
            return True
        return any(covers(grant.pattern, pattern) for grant in self._granted(Right.READ, is_own=is_own))

    def may_receive(self, topic: RoutingKey) -> bool:
        """Return whether the user may receive a topic's events; a subscribed prefix may match WAMP's topics, too."""
        return self._may(Right.READ, topic)

    def may_publish(self, topic: RoutingKey) -> bool:
        """Return whether the user may publish to a topic."""
        return self._may(Right.WRITE, topic)

    def may_administer(self, procedure: str) -> bool:
        """Return whether the user may call a procedure that shows other sessions or ends them."""
        return self.is_admin or self._may(Right.READ, RoutingKey(procedure))

    def _may(self, right: Right, topic: RoutingKey) -> bool:
        is_own = is_reserved(topic)
        if right in self.role_rights and self._is_open(is_own=is_own):
            return True
        return any(grant.pattern.matches(topic) for grant in self._granted(right, is_own=is_own))

    def _is_open(self, *, is_own: bool) -> bool:
        return self.is_admin or not is_own

    def _granted(self, right: Right, *, is_own: bool) -> Iterable[Grant]:
        for grant in self.grants:
            if grant.right is right and (not is_own or is_reserved(grant.pattern.uri)):
                yield grant


NO_RIGHTS = Rights(frozenset(), ())


def covers(grant: TopicPattern, requested: TopicPattern) -> bool:
    """Return whether `grant` matches every topic that `requested` can match."""
    if grant.match is MatchPolicy.PREFIX:
        return requested.literal_prefix.startswith(grant.uri)
    if requested.match is MatchPolicy.EXACT:
        return grant.matches(RoutingKey(requested.uri))
    if grant.match is MatchPolicy.EXACT or requested.match is MatchPolicy.PREFIX:
        # An exact or wildcard grant cannot cover a prefix; a wildcard without an empty component is a topic.
        is_topic = requested.match is MatchPolicy.WILDCARD and "" not in requested.uri.split(".")
        return is_topic and grant.uri == requested.uri
    holes, components = grant.uri.split("."), requested.uri.split(".")
    return len(holes) == len(components) and all(
        not hole or hole == component for hole, component in zip(holes, components, strict=True)
    )


def revoked(subscriptions: Iterable[TopicPattern], rights: Rights) -> list[TopicPattern]:
    """Return the subscriptions that these rights do not cover."""
    return [pattern for pattern in subscriptions if not rights.may_subscribe(pattern)]
