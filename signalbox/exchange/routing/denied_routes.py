"""The routes of a publication that no deny takes away: from its writer, and through realms to the users of queues."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from signalbox.exchange.matching.graph import Routes, Ways
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.denies import Denies
from signalbox.exchange.model.topics import RoutingKey
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

Owners = Mapping[DeclaredName, Collection[UserName]]
Realms = frozenset[ExchangeName]


@dataclass(frozen=True, slots=True)
class RouteDenies:
    """The ways of the keys of a batch from `root`, the denies that may concern it, and the users of its queues."""

    root: ExchangeName
    ways: Mapping[RoutingKey, Ways]
    denies: Mapping[UserName, Mapping[ExchangeName, Denies]]
    owners: Owners

    def closed(self, right: Right, key: RoutingKey, user: str) -> Realms:
        """Return the realms in which a user is denied a topic."""
        found = self.denies.get(UserName(user), {}).items()
        return frozenset(realm for realm, denies in found if denies.match(right, key))

    def routes(self, key: RoutingKey, publisher: str) -> Routes:
        """Return the routes of a publication that no deny takes away.

        A queue gets it on a way through realms in which none of the queue's users is denied its topic.
        """
        ways, refused = self.ways[key], self.closed(Right.WRITE, key, publisher) - {self.root}
        every = ways.routes(ways.passed(self.root, around=refused))
        if not self.denies:
            return every
        owners = {queue: self.owners.get(queue, ()) for queue in every.queues}
        by_user = {user: self.closed(Right.READ, key, user) for users in owners.values() for user in users}
        closed = {queue: refused.union(*map(by_user.__getitem__, users)) for queue, users in owners.items()}
        passed = {
            realms: set() if self.root in realms else ways.passed(self.root, around=realms)
            for realms in {*closed.values()}
        }
        queues = (queue for queue in every.queues if not passed[closed[queue]].isdisjoint(ways.queues[queue]))
        return replace(every, queues=tuple(queues))
