"""The topic matcher: a trie of binding patterns that is searched once for each message."""

from collections.abc import Hashable, Iterable
from sys import intern
from typing import Any, Generic, TypeVar

from signalbox.exchange.model.patterns import MANY, ONE, WILDCARDS, Pattern
from signalbox.exchange.model.topics import RoutingKey, words_of

Target = TypeVar("Target", bound=Hashable)

NO_EDGES: dict[str, Any] = {}  # shared by all nodes without edges; never written to
FEW = 8  # up to this number of targets a tuple is searched as fast as a dict


class _Node(Generic[Target]):
    """A node of the trie: `targets` are bound by exactly the words on the path to it, each once, in order.

    Most nodes have no edge or a single target and allocate no dict for them. With 100,000 bindings, routing time is
    dominated by memory that does not fit into the processor's caches.
    """

    __slots__ = ("edges", "targets")

    def __init__(self) -> None:
        self.edges: dict[str, _Node[Target]] = NO_EDGES
        self.targets: tuple[Target, ...] | dict[Target, None] = ()

    def child(self, word: str) -> "_Node[Target]":
        """Return the child node of a word, creating it if necessary."""
        if self.edges is NO_EDGES:
            self.edges = {}
        found = self.edges.get(word)
        if found is None:
            found = self.edges[intern(word)] = _Node()  # stations and dates occur in many patterns
        return found

    def add(self, target: Target) -> None:
        """Bind a target to this node's words."""
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
    """Bindings of any hashable targets: queues, exchanges, sessions.

    Matching visits each node at most once for each word, for any number of `#`, and never visits a binding whose first
    words differ from the key's.
    """

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Node[Target] = _Node()

    def add(self, pattern: Pattern, target: Target) -> None:
        """Bind a target. Binding it again has no effect."""
        node = self._root
        for word in pattern.words:
            node = node.child(word)
        node.add(target)

    def remove(self, pattern: Pattern, target: Target) -> None:
        """Unbind a target, and drop the nodes that no binding needs. Unbinding an unbound target has no effect."""
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
        # A reached `#` node matches any word, so it stays; the nodes in `here` were reached by the current word.
        # A node has one parent, and no node in `here` is a `#`, so no node is visited twice for a word.
        staying: dict[_Node[Target], None] = {}
        here = [self._root]
        _reach_many(here, staying, found)
        for word in words_of(key):
            # A `*` or `#` in a key is an ordinary word, which a pattern can match only with a wildcard.
            edges = (ONE,) if word in WILDCARDS else (word, ONE)
            here = [node.edges[edge] for node in (*here, *staying) for edge in edges if edge in node.edges]
            _reach_many(here, staying, found)
        for node in here:
            for target in node.targets:
                found[target] = None
        return list(found)


def _reach_many(nodes: Iterable[_Node[Target]], staying: dict[_Node[Target], None], found: dict[Target, None]) -> None:
    """Add the `#` nodes after `nodes` to `staying`, since `#` matches no word too, and their targets to `found`."""
    for node in nodes:
        many = node.edges.get(MANY)
        while many is not None and many not in staying:
            staying[many] = None
            for target in many.targets:
                found[target] = None
            many = many.edges.get(MANY)
