"""The routing graph: exchanges compiled for matching, with their bindings and alternates."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import WILDCARDS
from signalbox.exchange.model.records import Binding, ExchangeRecord, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.sarracenia.rights.names import ExchangeName

# Of one exchange in memory: 60 MB, and a few seconds to read after each change.
MAXIMUM_BINDINGS = 100_000
ANYWAY = WILDCARDS | {""}  # first words of patterns that match keys of any first word, or the empty key
NO_WORDS: frozenset[str] = frozenset()
Permit = Callable[[ExchangeName], bool]
"""Decides whether a message may pass into an exchange."""


def permit_all(_exchange: ExchangeName) -> bool:
    """Permit every way."""
    return True


@dataclass(frozen=True, slots=True)
class Routes:
    """The queues that get a message, each once. `by_alternate` is whether an exchange used its alternate on the way.

    `passed` are the exchanges on the way.
    """

    queues: tuple[DeclaredName, ...]
    by_alternate: bool
    passed: frozenset[ExchangeName] = field(default=frozenset(), compare=False)


@dataclass(slots=True)
class _Compiled:
    """An exchange and its bindings: all of them, or those whose patterns begin with one of `words`."""

    exchange: ExchangeRecord
    words: frozenset[str] | None = None
    bindings: BindingTrie[ResourceRef] = field(default_factory=BindingTrie)
    count: int = 0
    leads_to: set[ExchangeName] = field(init=False)
    _targets: dict[ResourceRef, ResourceRef] = field(default_factory=dict)  # one object for each target, to save memory

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
    """Compiled exchanges. An exchange that is not in the graph leads nowhere.

    For an exchange with more than `maximum` bindings, the graph holds only the bindings whose first words are wildcards
    or first words of received keys. It holds about `maximum` of them at a time, unless more begin with the same word.
    """

    maximum: int = MAXIMUM_BINDINGS
    _compiled: dict[ExchangeName, _Compiled] = field(default_factory=dict)

    def put(self, exchange: ExchangeRecord, bindings: Iterable[Binding]) -> None:
        """Compile an exchange, replacing its former version. With more than `maximum` bindings none is kept."""
        compiled = _Compiled(exchange)
        compiled.add(islice(bindings, self.maximum + 1))
        self._compiled[exchange.name] = compiled if compiled.count <= self.maximum else _Compiled(exchange, NO_WORDS)

    def missing(self, name: ExchangeName, keys: Iterable[RoutingKey]) -> frozenset[str]:
        """Return the first words whose bindings must be read before keys can be routed."""
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
        """Return whether an exchange holds more than `maximum` bindings."""
        known = self._compiled.get(name)
        return known is not None and known.count > self.maximum

    def empty(self, name: ExchangeName) -> None:
        """Drop all bindings of an exchange to free memory."""
        self._compiled[name] = _Compiled(self._compiled[name].exchange, NO_WORDS)

    def forget(self, name: ExchangeName) -> None:
        """Remove an exchange that does not exist any more."""
        self._compiled.pop(name, None)

    def exchange(self, name: ExchangeName) -> ExchangeRecord:
        """Return the record of an exchange as of its compilation."""
        return self._compiled[name].exchange

    def knows(self, exchange: ExchangeRecord) -> bool:
        """Return whether the compiled exchange is up to date: each change of its bindings changes its version."""
        known = self._compiled.get(exchange.name)
        return known is not None and known.exchange == exchange

    def reachable(self, root: ExchangeName) -> frozenset[ExchangeName]:
        """Return an exchange and all exchanges that its compiled routes lead to."""
        found = {root}
        waiting = [root]
        while waiting:
            known = self._compiled.get(waiting.pop())
            new = known.leads_to - found if known else set()
            found |= new
            waiting += new
        return frozenset(found)

    def realms(self, root: ExchangeName) -> frozenset[ExchangeName]:
        """Return the live exchanges among those that `root` leads to."""
        found = ((name, self._compiled.get(name)) for name in self.reachable(root))
        return frozenset(name for name, known in found if known is not None and known.exchange.live is not None)

    def readers(self, root: ExchangeName, key: RoutingKey) -> Mapping[ExchangeName, Iterable[DeclaredName]]:
        """Return the live exchanges that a message passes, each with the queues whose users' denies there count.

        A queue that gets the message around all live exchanges but `root` depends on no deny of the others.
        """
        every = self.routes(root, key)
        realms = every.passed & self.realms(root)
        others = realms - {root}
        around = self.routes(root, key, permit=lambda name: name not in others) if others else every
        through = frozenset(every.queues).difference(around.queues)
        found: dict[ExchangeName, Iterable[DeclaredName]] = dict.fromkeys(realms, every.queues)
        return found | {one: through.intersection(self.routes(one, key).queues) for one in others}

    def routes(self, root: ExchangeName, key: RoutingKey, *, permit: Permit = permit_all) -> Routes:
        """Return the queues that get a message. As in RabbitMQ, an exchange passes unmatched messages to its alternate.

        Each exchange is visited once, so that cycles of bindings are harmless. A message passes into no exchange that
        `permit` refuses.
        """
        queues: dict[DeclaredName, None] = {}
        seen = {root}
        waiting = [root]
        by_alternate = False
        while waiting:
            name = waiting.pop()
            known = self._compiled.get(name)
            if known is None:
                continue
            targets = known.bindings.matching(key)
            if not targets and known.exchange.alternate:
                by_alternate = True
                targets = [ResourceRef(ResourceKind.EXCHANGE, known.exchange.alternate)]
            for target in targets:
                if target.kind is ResourceKind.QUEUE:
                    queues[DeclaredName(target.name)] = None
                elif target.name not in seen and permit(ExchangeName(target.name)):
                    seen.add(ExchangeName(target.name))
                    waiting.append(ExchangeName(target.name))
        return Routes(tuple(queues), by_alternate, frozenset(seen))
