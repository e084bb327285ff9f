"""The routing graph: exchanges compiled for matching, with their bindings and alternates."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import WILDCARDS, place_of
from signalbox.exchange.model.records import Binding, ExchangeRecord, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.sarracenia.rights.names import ExchangeName

# Of the patterns of one exchange in memory: 100,000 bindings of five words are 60 MB, and a few seconds to read after
# each change. Words that no two patterns share are 260 bytes each.
MAXIMUM_WORDS = 500_000
MAXIMUM_OF_INSTANCE = 2 * MAXIMUM_WORDS
ANYWAY = WILDCARDS | {""}  # first words of patterns that match keys of any first word, or the empty key
NO_WORDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Routes:
    """The queues that get a message, each once. `by_alternate` is whether an exchange used its alternate on the way."""

    queues: tuple[DeclaredName, ...]
    by_alternate: bool


@dataclass(slots=True)
class Ways:
    """The ways of a key from `root`, for which the bindings of each exchange are matched once.

    `exchanges` are the exchanges that each exchange passes the key to, and `queues` the exchanges from which each queue
    gets it. `alternates` are the exchanges that pass it to their alternates.
    """

    root: ExchangeName
    exchanges: dict[ExchangeName, list[ExchangeName]] = field(default_factory=dict)
    queues: dict[DeclaredName, list[ExchangeName]] = field(default_factory=dict)
    alternates: set[ExchangeName] = field(default_factory=set)

    def passed(self, start: ExchangeName, *, around: Collection[ExchangeName] = ()) -> set[ExchangeName]:
        """Return the exchanges that a message passes from `start` on without entering those in `around`."""
        found = {start}
        waiting = [start]
        while waiting:
            new = [one for one in self.exchanges.get(waiting.pop(), ()) if one not in found and one not in around]
            found.update(new)
            waiting += new
        return found

    def routes(self, passed: AbstractSet[ExchangeName]) -> Routes:
        """Return the queues that get a message from some of the exchanges."""
        queues = tuple(queue for queue, sources in self.queues.items() if not passed.isdisjoint(sources))
        return Routes(queues, not passed.isdisjoint(self.alternates))

    def readers(self, realms: AbstractSet[ExchangeName]) -> Mapping[ExchangeName, Collection[DeclaredName]]:
        """Return the `realms` that a message passes, each with the queues to whose users its denies apply.

        A queue that gets the message by a way whose only live exchange is `root` depends on no other realm's denies.
        """
        realms &= self.passed(self.root)
        direct = self.passed(self.root, around=realms)
        through = {queue: sources for queue, sources in self.queues.items() if direct.isdisjoint(sources)}
        found: dict[ExchangeName, Collection[DeclaredName]] = {}
        for realm in realms - {self.root}:
            behind = self.passed(realm) if through else direct
            found[realm] = [queue for queue, sources in through.items() if not behind.isdisjoint(sources)]
        return found | dict.fromkeys(realms & {self.root}, self.queues.keys())


@dataclass(slots=True)
class FirstWords:
    """The first words that patterns have, known within ranges of places.

    Each range begins and ends with the first word of a pattern, or before or behind all of them, so that keys with ever
    new first words cause at most one read more than patterns have first words.
    """

    _existing: set[str] = field(default_factory=set)
    _begins: list[str] = field(default_factory=list)
    _ends: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._existing)

    def exists(self, word: str) -> bool | None:
        """Return whether a pattern begins with a word, or None if that is not known."""
        place = place_of(word)
        number = bisect_right(self._begins, place) - 1
        return place in self._existing if number >= 0 and place <= self._ends[number] else None

    def add(self, places: Sequence[str]) -> None:
        """Add the places of all first words from the first to the last of these, sorted."""
        self._existing.update(places)
        start, stop = bisect_left(self._ends, places[0]), bisect_right(self._begins, places[-1])
        self._begins[start:stop] = [min([places[0], *self._begins[start:stop]])]
        self._ends[start:stop] = [max([places[-1], *self._ends[start:stop]])]


@dataclass(slots=True)
class _Compiled:
    """An exchange and its bindings: all of them, or those whose patterns begin with one of `words`.

    `weight` is the number of words in all patterns, at least one for each binding, and of known first words.
    """

    exchange: ExchangeRecord
    is_whole: bool = True
    words: set[str] = field(default_factory=set)
    first_words: FirstWords = field(default_factory=FirstWords)
    bindings: BindingTrie[ResourceRef] = field(default_factory=BindingTrie)
    weight: int = 0
    leads_to: set[ExchangeName] = field(init=False)
    _targets: dict[ResourceRef, ResourceRef] = field(default_factory=dict)  # one object for each target, to save memory

    def __post_init__(self) -> None:
        self.weight = len(self.first_words)
        self.leads_to = {self.exchange.alternate} if self.exchange.alternate else set()

    def add(self, bindings: Iterable[Binding], *, most: float = math.inf) -> None:
        """Compile bindings until they weigh more than `most`."""
        for binding in bindings:
            target = self._targets.setdefault(binding.target, binding.target)
            self.bindings.add(binding.pattern, target)
            self.weight += max(len(binding.pattern.words), 1)
            if target.kind is ResourceKind.EXCHANGE:
                self.leads_to.add(ExchangeName(target.name))
            if self.weight > most:
                return


@dataclass(slots=True)
class RoutingGraph:
    """Compiled exchanges. An exchange that is not in the graph leads nowhere.

    For an exchange with more than `maximum` words in its bindings, the graph holds only the bindings whose first words
    are wildcards or first words of received keys. It holds about `maximum` words of them at a time, unless bindings
    with more begin with the same word. Of all exchanges it holds `of_all` words, unless a message needs more.
    """

    maximum: int = MAXIMUM_WORDS
    of_all: int = MAXIMUM_OF_INSTANCE
    _compiled: dict[ExchangeName, _Compiled] = field(default_factory=dict)

    def put(self, exchange: ExchangeRecord, bindings: Iterable[Binding]) -> None:
        """Compile an exchange. With more than `maximum` words no binding is kept.

        Its former version is dropped before `bindings` are read, since memory may not hold both.
        """
        self.forget(exchange.name)
        compiled = _Compiled(exchange)
        compiled.add(bindings, most=self.maximum)
        is_whole = compiled.weight <= self.maximum
        self._compiled[exchange.name] = compiled if is_whole else _Compiled(exchange, is_whole=False)

    def use(self, names: Iterable[ExchangeName]) -> None:
        """Keep the named exchanges; forget others, least recently used first, while all weigh more than `of_all`."""
        used = {name: self._compiled.pop(name) for name in names if name in self._compiled}
        weight = sum(one.weight for one in (*self._compiled.values(), *used.values()))
        for name in list(self._compiled):
            if weight <= self.of_all:
                break
            weight -= self._compiled.pop(name).weight
        self._compiled |= used

    def unknown(self, name: ExchangeName, keys: Iterable[RoutingKey]) -> str | None:
        """Return the place around which first words must be read before it is known which bindings keys need."""
        known = self._compiled.get(name)
        if known is None or known.is_whole:
            return None
        exists = known.first_words.exists
        return min((place_of(word) for word in _first_words(keys) - ANYWAY if exists(word) is None), default=None)

    def missing(self, name: ExchangeName, keys: Iterable[RoutingKey]) -> AbstractSet[str]:
        """Return the first words whose bindings must be read before keys can be routed."""
        known = self._compiled.get(name)
        if known is None or known.is_whole:
            return NO_WORDS
        exists = known.first_words.exists
        return ANYWAY.union(word for word in _first_words(keys) if exists(word) is not False) - known.words

    def add_first_words(self, name: ExchangeName, places: Sequence[str]) -> None:
        """Add which first words the patterns of an exchange have, as `FirstWords` does."""
        known = self._compiled[name]
        known.weight -= len(known.first_words)
        known.first_words.add(places)
        known.weight += len(known.first_words)

    def add(self, name: ExchangeName, word: str, bindings: Iterable[Binding]) -> None:
        """Compile the bindings of an exchange that begin with a word."""
        known = self._compiled[name]
        known.add(bindings)
        known.words.add(word)

    def is_full(self, name: ExchangeName) -> bool:
        """Return whether an exchange holds more than `maximum` words."""
        known = self._compiled.get(name)
        return known is not None and known.weight > self.maximum

    def empty(self, name: ExchangeName) -> None:
        """Drop all bindings of an exchange to free memory, and the known first words if these take half of it."""
        known = self._compiled[name]
        kept = known.first_words if len(known.first_words) <= self.maximum // 2 else FirstWords()
        self._compiled[name] = _Compiled(known.exchange, is_whole=False, first_words=kept)

    def forget(self, name: ExchangeName) -> None:
        """Remove an exchange from the graph."""
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

    def ways(self, root: ExchangeName, key: RoutingKey) -> Ways:
        """Return the ways of a key. As in RabbitMQ, an exchange passes unmatched messages to its alternate.

        Each exchange is visited once, so that cycles of bindings are harmless.
        """
        found = Ways(root)
        waiting = [root]
        while waiting:
            name = waiting.pop()
            known = self._compiled.get(name)
            if known is None or name in found.exchanges:
                continue
            leads_to = found.exchanges[name] = []
            targets = known.bindings.matching(key)
            if not targets and known.exchange.alternate:
                found.alternates.add(name)
                leads_to.append(known.exchange.alternate)
            for target in targets:
                if target.kind is ResourceKind.QUEUE:
                    found.queues.setdefault(DeclaredName(target.name), []).append(name)
                else:
                    leads_to.append(ExchangeName(target.name))
            waiting += leads_to
        return found

    def routes(self, root: ExchangeName, key: RoutingKey) -> Routes:
        """Return the queues that get a message."""
        ways = self.ways(root, key)
        return ways.routes(ways.passed(root))


def _first_words(keys: Iterable[RoutingKey]) -> set[str]:
    return {word for key in keys for word in words_of(key)[:1]}
