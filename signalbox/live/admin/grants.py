"""Who may subscribe and publish to what: by the exchange's roles, and by grants on topic patterns."""

from collections.abc import Iterable
from dataclasses import dataclass

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import is_reserved
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted


@dataclass(frozen=True, slots=True)
class Grant:
    """A user's right to the topics of a realm that a pattern matches: to subscribe (`READ`) or to publish (`WRITE`)."""

    right: Right
    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class Rights:
    """What a user may do in a realm: by `role_rights` to all topics, by grants to some.

    WAMP's own topics and procedures are open to administrators, and to whom they are granted by name.
    """

    role_rights: frozenset[Right]
    grants: tuple[Grant, ...]
    is_admin: bool = False

    @classmethod
    def in_realm(
        cls, realm: ExchangeName, *, user: UserName, role: Role, ownership: Ownership, grants: Iterable[Grant]
    ) -> "Rights":
        """Return the rights of a user in a realm, given the grants that the user has there."""
        by_role = (right for right in Right if is_permitted(user, role, right, name=realm, ownership=ownership))
        return cls(frozenset(by_role), tuple(grants), is_admin=role is Role.ADMIN)

    @property
    def are_any(self) -> bool:
        """Say whether there is a reason to join."""
        return bool(self.role_rights or self.grants)

    def may_subscribe(self, pattern: TopicPattern) -> bool:
        """Say whether all topics that a pattern can match are open; one grant must cover it, as two do not add up."""
        is_own = is_reserved(pattern.uri)
        if Right.READ in self.role_rights and self._is_open(is_own=is_own):
            return True
        return any(covers(grant.pattern, pattern) for grant in self._granted(Right.READ, is_own=is_own))

    def may_receive(self, topic: RoutingKey) -> bool:
        """Say whether an event may be seen; a prefix may match WAMP's own topics, too."""
        return self._may(Right.READ, topic)

    def may_publish(self, topic: RoutingKey) -> bool:
        """Say whether a topic may be published to."""
        return self._may(Right.WRITE, topic)

    def may_administer(self, procedure: str) -> bool:
        """Say whether a procedure of WAMP's own that looks at others, or ends them, may be called."""
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


def covers(grant: TopicPattern, wanted: TopicPattern) -> bool:
    """Say whether every topic that `wanted` can match is matched by `grant`."""
    if grant.match is MatchPolicy.PREFIX:
        return wanted.literal_prefix.startswith(grant.uri)
    if wanted.match is MatchPolicy.EXACT:
        return grant.matches(RoutingKey(wanted.uri))
    if grant.match is MatchPolicy.EXACT or wanted.match is MatchPolicy.PREFIX:
        # Neither one topic nor a number of components can hold all that begins with a text; and a wildcard without a
        # hole is a topic.
        return grant.uri == wanted.uri and wanted.match is MatchPolicy.WILDCARD and "" not in wanted.uri.split(".")
    holes, components = grant.uri.split("."), wanted.uri.split(".")
    return len(holes) == len(components) and all(
        not hole or hole == component for hole, component in zip(holes, components, strict=True)
    )


def revoked(subscriptions: Iterable[TopicPattern], rights: Rights) -> list[TopicPattern]:
    """Return the subscriptions that end when a user has these rights and no others."""
    return [pattern for pattern in subscriptions if not rights.may_subscribe(pattern)]
