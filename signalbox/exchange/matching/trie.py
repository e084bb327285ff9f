"""The matcher: all bindings of an exchange in one tree of words, asked once a message."""

from collections.abc import Hashable, Iterable
from sys import intern
from typing import Any, Generic, TypeVar

from signalbox.exchange.model.patterns import MANY, ONE, WILDCARDS, Pattern
from signalbox.exchange.model.topics import RoutingKey, words_of

Target = TypeVar("Target", bound=Hashable)

NO_EDGES: dict[str, Any] = {}  # of every node without any; never written to
FEW = 8  # as many targets are looked through as fast as one is looked up


class _Node(Generic[Target]):
    """The patterns that begin with the same words; `targets` are bound by those words alone, each once, in order.

    Most nodes have no edge or a single target, and then nothing is made to hold more: what routing takes time for,
    with 100,000 bindings, is memory that does not fit into the processor's caches.
    """

    __slots__ = ("edges", "targets")

    def __init__(self) -> None:
        self.edges: dict[str, _Node[Target]] = NO_EDGES
        self.targets: tuple[Target, ...] | dict[Target, None] = ()

    def child(self, word: str) -> "_Node[Target]":
        """Return the node behind a word, made if it is not there."""
        if self.edges is NO_EDGES:
            self.edges = {}
        found = self.edges.get(word)
        if found is None:
            found = self.edges[intern(word)] = _Node()  # offices and dates come in many patterns
        return found

    def add(self, target: Target) -> None:
        """Bind a target by the words up to here."""
        if target in self.targets:
            return
        if isinstance(self.targets, dict):
            self.targets[target] = None
        elif len(self.targets) < FEW:
            self.targets = (*self.targets, target)
        else:
            self.targets = dict.fromkeys((*self.targets, target))

    def discard(self, target: Target) -> None:
        """Unbind a target."""
        if isinstance(self.targets, dict):
            self.targets.pop(target, None)
        else:
            self.targets = tuple(one for one in self.targets if one != target)


class BindingTrie(Generic[Target]):
    """Bindings of anything that can be told from one another: queues, exchanges, sessions.

    Matching looks at each node of the tree at most once a word, however many `#` there are, and never at a binding
    whose first words differ from the key's.
    """

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Node[Target] = _Node()

    def add(self, pattern: Pattern, target: Target) -> None:
        """Bind a target; one that is bound already stays bound once."""
        node = self._root
        for word in pattern.words:
            node = node.child(word)
        node.add(target)

    def remove(self, pattern: Pattern, target: Target) -> None:
        """Unbind a target; one that is not bound stays so. What no binding needs any more is forgotten."""
        path = [self._root]
        for word in pattern.words:
            child = path[-1].edges.get(word)
            if child is None:
                return
            path.append(child)
        path[-1].discard(target)
        for word in reversed(pattern.words):
            node = path.pop()
            if node.edges or node.targets:
                return
            del path[-1].edges[word]

    def matching(self, key: RoutingKey) -> list[Target]:
        """Return every target with a binding that matches, each once."""
        found: dict[Target, None] = {}
        # A `#` that has been reached takes any word, so its node stays; those in `here` were reached by this word.
        # An edge has one parent, and no edge of `here` is a `#`, so no node is ever looked at twice for a word.
        staying: dict[_Node[Target], None] = {}
        here = [self._root]
        _reach_many(here, staying, found)
        for word in words_of(key):
            # A key's own `*` or `#` is a word like any other, which a pattern can only meet with a wildcard.
            edges = (ONE,) if word in WILDCARDS else (word, ONE)
            here = [node.edges[edge] for node in (*here, *staying) for edge in edges if edge in node.edges]
            _reach_many(here, staying, found)
        for node in here:
            for target in node.targets:
                found[target] = None
        return list(found)


def _reach_many(nodes: Iterable[_Node[Target]], staying: dict[_Node[Target], None], found: dict[Target, None]) -> None:
    """Go from nodes to the `#` behind them, which may take no word at all; one that ends a pattern has matched."""
    for node in nodes:
        many = node.edges.get(MANY)
        while many is not None and many not in staying:
            staying[many] = None
            for target in many.targets:
                found[target] = None
            many = many.edges.get(MANY)
