"""The routing graph: exchanges compiled for matching, and whatever messages go on to from them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import WILDCARDS
from signalbox.exchange.model.records import Binding, Exchange, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.sarracenia.rights.names import ExchangeName

# Of one exchange that is held as a whole: 60 MB of memory, and a few seconds to read them after each change.
MAXIMUM_BINDINGS = 100_000
ANYWAY = WILDCARDS | {""}  # what patterns begin with that match keys of more first words than one, or of none
NO_WORDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Routes:
    """The queues that get a message, each once; and whether an exchange on the way had nothing but its alternate."""

    queues: tuple[DeclaredName, ...]
    by_alternate: bool


@dataclass(slots=True)
class _Compiled:
    """An exchange and its bindings: all of them, or those that begin with one of `words`."""

    exchange: Exchange
    words: frozenset[str] | None = None
    bindings: BindingTrie[ResourceRef] = field(default_factory=BindingTrie)
    count: int = 0
    leads_to: set[ExchangeName] = field(init=False)
    _targets: dict[ResourceRef, ResourceRef] = field(
        default_factory=dict
    )  # many bindings have one, which memory holds once

    def __post_init__(self) -> None:
        self.leads_to = {self.exchange.alternate} if self.exchange.alternate else set()

    def add(self, bindings: Iterable[Binding]) -> None:
        for binding in bindings:
            target = self._targets.setdefault(binding.target, binding.target)
            self.bindings.add(binding.pattern, target)
            self.count += 1
            if target.kind is ResourceKind.EXCHANGE:
                self.leads_to.add(ExchangeName(target.name))


@dataclass(slots=True)
class RoutingGraph:
    """Exchanges as they were compiled last. An exchange that is not in it leads nowhere.

    Of an exchange with more than `maximum` bindings only those are held whose first words are those of keys that came,
    or wildcards: never many more than `maximum` at a time, unless that many begin with the same word.
    """

    maximum: int = MAXIMUM_BINDINGS
    _compiled: dict[ExchangeName, _Compiled] = field(default_factory=dict)

    def put(self, exchange: Exchange, bindings: Iterable[Binding]) -> None:
        """Compile an exchange, in the place of what was known of it; of too many bindings none is kept."""
        compiled = _Compiled(exchange)
        compiled.add(islice(bindings, self.maximum + 1))
        self._compiled[exchange.name] = compiled if compiled.count <= self.maximum else _Compiled(exchange, NO_WORDS)

    def missing(self, name: ExchangeName, keys: Iterable[RoutingKey]) -> frozenset[str]:
        """Return first words of bindings without which keys cannot be routed; none when all bindings are known."""
        known = self._compiled.get(name)
        if known is None or known.words is None:
            return NO_WORDS
        return ANYWAY.union(*(words_of(key)[:1] for key in keys)) - known.words

    def add(self, name: ExchangeName, word: str, bindings: Iterable[Binding]) -> None:
        """Compile the bindings of an exchange that begin with a word."""
        known = self._compiled[name]
        known.add(bindings)
        known.words = (known.words or NO_WORDS) | {word}

    def is_full(self, name: ExchangeName) -> bool:
        """Say whether there is no room for more bindings of an exchange."""
        known = self._compiled.get(name)
        return known is not None and known.count > self.maximum

    def empty(self, name: ExchangeName) -> None:
        """Make room: forget all bindings of an exchange."""
        self._compiled[name] = _Compiled(self._compiled[name].exchange, NO_WORDS)

    def forget(self, name: ExchangeName) -> None:
        """Forget an exchange that is not there any more."""
        self._compiled.pop(name, None)

    def exchange(self, name: ExchangeName) -> Exchange:
        """Return an exchange that is compiled, as it stood then."""
        return self._compiled[name].exchange

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
            new = known.leads_to - found if known else set()
            found |= new
            waiting += new
        return frozenset(found)

    def routes(self, root: ExchangeName, key: RoutingKey) -> Routes:
        """Return where a message goes. As in RabbitMQ, an exchange passes it to its alternate if no binding matches.

        Each exchange is asked once, so that exchanges binding in a circle do no harm.
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
                targets = [ResourceRef(ResourceKind.EXCHANGE, known.exchange.alternate)]
            for target in targets:
                if target.kind is ResourceKind.QUEUE:
                    queues[DeclaredName(target.name)] = None
                elif target.name not in seen:
                    seen.add(ExchangeName(target.name))
                    waiting.append(ExchangeName(target.name))
        return Routes(tuple(queues), by_alternate)
