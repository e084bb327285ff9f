"""The routes of a publication that no deny takes away: from its writer, and through realms to the users of queues."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from signalbox.exchange.matching.graph import Routes, RoutingGraph
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.denies import Denies
from signalbox.exchange.model.topics import RoutingKey
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

Owners = Mapping[DeclaredName, Collection[UserName]]
Realms = frozenset[ExchangeName]
OPEN: Realms = frozenset()
NOWHERE = Routes((), by_alternate=False)


@dataclass(frozen=True, slots=True)
class RouteDenies:
    """The denies that may concern a batch of `root`, by user and realm, and the users of its queues."""

    root: ExchangeName
    denies: Mapping[UserName, Mapping[ExchangeName, Denies]]
    owners: Owners

    def refuse(self, right: Right, key: RoutingKey, users: Iterable[str], *, realm: ExchangeName) -> bool:
        """Return whether one of the users is denied a topic of a realm."""
        found = (self.denies.get(UserName(user), {}).get(realm) for user in users)
        return any(one is not None and one.match(right, key) for one in found)

    def routes(self, graph: RoutingGraph, key: RoutingKey, publisher: str) -> Routes:
        """Return the routes of a publication that no deny takes away.

        A queue gets it on a way through realms in which none of the queue's users is denied its topic.
        """
        every = self._routes(graph, key, publisher, closed=OPEN)
        if not self.denies:
            return every
        closed = {queue: self._closed(key, queue) for queue in every.queues}
        reached = {realms: self._routes(graph, key, publisher, closed=realms).queues for realms in {*closed.values()}}
        return replace(every, queues=tuple(queue for queue in every.queues if queue in reached[closed[queue]]))

    def _closed(self, key: RoutingKey, queue: DeclaredName) -> Realms:
        """Return the realms in which a user of a queue may not read a topic."""
        found = (one for user in self.owners.get(queue, ()) for one in self.denies.get(user, {}).items())
        return frozenset(realm for realm, denies in found if denies.match(Right.READ, key))

    def _routes(self, graph: RoutingGraph, key: RoutingKey, publisher: str, *, closed: Realms) -> Routes:
        """Return the routes around the realms that are closed, and those to which the publisher may not write."""
        if self.root in closed:
            return NOWHERE

        def permit(realm: ExchangeName) -> bool:
            return realm not in closed and not self.refuse(Right.WRITE, key, [publisher], realm=realm)

        return graph.routes(self.root, key, permit=permit)
