"""The routing graph: exchanges compiled for matching, and whatever messages go on to from them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from signalbox.exchange.bindings import DeclaredName
from signalbox.exchange.records import Bound, Exchange, Kind, Place
from signalbox.exchange.topics import RoutingKey
from signalbox.exchange.trie import BindingTrie
from signalbox.sarracenia.names import ExchangeName


@dataclass(frozen=True, slots=True)
class Routes:
    """The queues that get a message, each once; and whether an exchange on the way had nothing but its alternate."""

    queues: tuple[DeclaredName, ...]
    by_alternate: bool


@dataclass(frozen=True, slots=True)
class _Compiled:
    exchange: Exchange
    bindings: BindingTrie[Place]
    leads_to: frozenset[ExchangeName]


@dataclass(slots=True)
class Graph:
    """Exchanges as they were compiled last. An exchange that is not in it leads nowhere."""

    _compiled: dict[ExchangeName, _Compiled] = field(default_factory=dict)

    def put(self, exchange: Exchange, bindings: Iterable[Bound]) -> None:
        """Compile an exchange, in the place of what was known of it."""
        trie: BindingTrie[Place] = BindingTrie()
        places: dict[Place, Place] = {}  # many bindings have the same target, which memory needs to hold once
        for bound in bindings:
            trie.add(bound.pattern, places.setdefault(bound.target, bound.target))
        leads_to = {ExchangeName(place.name) for place in places if place.kind is Kind.EXCHANGE}
        if exchange.alternate:
            leads_to.add(exchange.alternate)
        self._compiled[exchange.name] = _Compiled(exchange, trie, frozenset(leads_to))

    def forget(self, name: ExchangeName) -> None:
        """Forget an exchange that is not there any more."""
        self._compiled.pop(name, None)

    def knows(self, exchange: Exchange) -> bool:
        """Say whether an exchange is compiled as it stands: its version tells of each change of its bindings."""
        known = self._compiled.get(exchange.name)
        return known is not None and known.exchange == exchange

    def reachable(self, root: ExchangeName) -> frozenset[ExchangeName]:
        """Return an exchange, and all on which its routes depend as far as is known."""
        found = {root}
        waiting = [root]
        while waiting:
            known = self._compiled.get(waiting.pop())
            new = known.leads_to - found if known else ()
            found |= set(new)
            waiting += new
        return frozenset(found)

    def routes(self, root: ExchangeName, key: RoutingKey) -> Routes:
        """Return where a message goes. As in RabbitMQ, an exchange passes it to its alternate if no binding matches.

        Each exchange is asked once, so that exchanges bound in a circle do no harm.
        """
        queues: dict[DeclaredName, None] = {}
        seen = {root}
        waiting = [root]
        by_alternate = False
        while waiting:
            known = self._compiled.get(waiting.pop())
            if known is None:
                continue
            targets = known.bindings.matching(key)
            if not targets and known.exchange.alternate:
                by_alternate = True
                targets = [Place(Kind.EXCHANGE, known.exchange.alternate)]
            for target in targets:
                if target.kind is Kind.QUEUE:
                    queues[DeclaredName(target.name)] = None
                elif target.name not in seen:
                    seen.add(ExchangeName(target.name))
                    waiting.append(ExchangeName(target.name))
        return Routes(tuple(queues), by_alternate)
