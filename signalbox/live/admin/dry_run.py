"""What a change of rights would do, without the change: to present subscriptions, and to the rights to topics."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.concerned_sessions import ConcernedSessions
from signalbox.live.admin.coverage import may_overlap
from signalbox.live.admin.grants import Rights
from signalbox.live.admin.ports import LiveAdminPorts
from signalbox.live.admin.principals import EVERYONE, PrincipalName, group_of, user_of
from signalbox.live.admin.rights_sources import Change, RightsSources, RightsSourcesReader
from signalbox.live.session.state import ConnectionId, Session
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role

MAXIMUM_SUBSCRIPTIONS, MAXIMUM_USERS = 500, 200  # in one answer
HAS, HAS_NOT = "1", "0"  # a right to a topic


class Extent(IntEnum):
    """How much of a subscription's topics a session may receive; PARTLY if a deny may match some of them."""

    NOTHING = 0
    PARTLY = 1
    WHOLLY = 2


@dataclass(frozen=True, slots=True)
class JoinedSession:
    """A joined session, and the sources of its rights; None if its user was removed."""

    session: Session
    sources: RightsSources | None


def dry_run(sessions: Iterable[JoinedSession], change: Change) -> dict[str, object]:
    """Return the first 500 subscriptions that a change would end, limit or widen, and the number of the others."""
    found = [document for one in sessions for document in _changed(one, change)]
    return {
        "dry_run": True,
        "subscriptions": found[:MAXIMUM_SUBSCRIPTIONS],
        "more": max(0, len(found) - MAXIMUM_SUBSCRIPTIONS),
    }


def extent(rights: Rights, pattern: TopicPattern) -> Extent:
    """Return how much of a subscription's topics a session may receive."""
    if not rights.may_subscribe(pattern):
        return Extent.NOTHING
    denies = (deny for deny in rights.denies if deny.right is Right.READ)
    return Extent.PARTLY if any(may_overlap(deny.pattern, pattern) for deny in denies) else Extent.WHOLLY


def _changed(one: JoinedSession, change: Change) -> Iterator[dict[str, object]]:
    if one.sources is None:
        return
    before, after = one.sources.rights, change(one.sources).rights
    for pattern in _patterns(one.session):
        effect = _effect(extent(before, pattern), extent(after, pattern))
        if effect:
            yield {
                "user": one.sources.user,
                "session": one.session.session,
                "match": pattern.match.value,
                "uri": pattern.uri,
                "effect": effect,
            }


def _effect(before: Extent, after: Extent) -> str:
    if after is Extent.NOTHING:
        return "ends" if before else ""
    return "limits" if after < before else "permits" if after > before else ""


def _patterns(session: Session) -> Sequence[TopicPattern]:
    return sorted(session.subscriptions.values(), key=lambda pattern: (pattern.uri, pattern.match))


@dataclass(frozen=True, slots=True)
class ConcernedUsers:
    """Finds the users of a realm that a change of a grant concerns."""

    ports: LiveAdminPorts
    realm: ExchangeName

    def of_principal(self, principal: PrincipalName, connections: Sequence[ConnectionId]) -> Sequence[RightsSources]:
        """Return the sources of the users of a principal, and of its present sessions on `connections`.

        The groups in tokens are those of the present sessions.
        """
        reader = RightsSourcesReader(self.ports, self.realm, self.ports.grants.of_groups(self.realm))
        sessions = ConcernedSessions(self.ports).records(connections)
        joined = [one for one in self.ports.parallel_map(reader.of_session, sessions) if one is not None]
        present = {one.user for one in joined}
        names = [name for name in self._names(principal) if name not in present]
        return [*self.ports.parallel_map(lambda name: _stored(reader, name), names), *joined]

    def _names(self, principal: PrincipalName) -> Sequence[UserName]:
        if principal == EVERYONE:
            return [one.name for one in self.ports.users.every()]
        user = user_of(principal)
        if user is not None:
            return [user]
        return [name for _, name in self.ports.groups.members(self.realm, group_of(principal))]


def visibility(
    concerned: Iterable[RightsSources], change: Change, right: Right, topics: Sequence[RoutingKey]
) -> dict[str, object]:
    """Return `visibility` for the first 200 users, those with the same rights together, and the number of others."""
    rows = sorted(set(_visible(concerned, change, right, topics)))
    found: dict[tuple[str, str], list[UserName]] = {}
    for user, before, after in rows[:MAXIMUM_USERS]:
        found.setdefault((before, after), []).append(user)
    listed = [{"users": users, "before": before, "after": after} for (before, after), users in found.items()]
    return {"visibility": listed, "more_users": len(rows[MAXIMUM_USERS:])}


def _visible(
    concerned: Iterable[RightsSources], change: Change, right: Right, topics: Sequence[RoutingKey]
) -> Iterator[tuple[UserName, str, str]]:
    for one in concerned:
        yield one.user, _marks(one, right, topics), _marks(change(one), right, topics)


def _marks(sources: RightsSources, right: Right, topics: Sequence[RoutingKey]) -> str:
    rights = sources.rights
    has = rights.may_receive if right is Right.READ else rights.may_publish
    return "".join(HAS if has(topic) else HAS_NOT for topic in topics)


def _stored(reader: RightsSourcesReader, name: UserName) -> RightsSources:
    """Return the sources of a user of the stage, or else of a token's user without groups in its token."""
    return reader.of_user(name) or reader.of_token(name, role=Role.SUBSCRIBER, groups=frozenset())
