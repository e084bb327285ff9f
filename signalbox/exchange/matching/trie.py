"""The topic matcher: a trie of binding patterns that is searched once for each message."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from sys import intern
from typing import Any, Generic, TypeVar

from signalbox.exchange.model.patterns import MANY, ONE, Pattern
from signalbox.exchange.model.topics import RoutingKey, words_of

Target = TypeVar("Target", bound=Hashable)

NO_EDGES: dict[str, Any] = {}  # shared by all nodes without edges; never written to
FEW = 8  # up to this number of targets or words a sequence is searched as fast as a dict or a set is made


class _Node(Generic[Target]):
    """A node of the trie: `targets` are bound by exactly the words on the path to it, each once, in order.

    `edges` are its children by word, `one` the child by `*`, and `many` the child by `#`. Most nodes have no edge or a
    single target and allocate no dict for them. With 100,000 bindings, routing time is dominated by memory that does
    not fit into the processor's caches.
    """

    __slots__ = ("edges", "many", "one", "targets")

    def __init__(self) -> None:
        self.edges: dict[str, _Node[Target]] = NO_EDGES
        self.one: _Node[Target] | None = None
        self.many: _Node[Target] | None = None
        self.targets: tuple[Target, ...] | dict[Target, None] = ()

    def __bool__(self) -> bool:
        return bool(self.targets or self.edges or self.one is not None or self.many is not None)

    def child(self, word: str) -> "_Node[Target] | None":
        """Return the child node of a pattern's word."""
        return self.one if word == ONE else self.many if word == MANY else self.edges.get(word)

    def grow(self, word: str) -> "_Node[Target]":
        """Return the child node of a pattern's word, creating it if necessary."""
        found = self.child(word)
        if found is not None:
            return found
        created: _Node[Target] = _Node()
        if word == ONE:
            self.one = created
        elif word == MANY:
            self.many = created
        else:
            if self.edges is NO_EDGES:
                self.edges = {}
            self.edges[intern(word)] = created  # stations and dates occur in many patterns
        return created

    def prune(self, word: str) -> None:
        """Drop the child node of a pattern's word."""
        if word == ONE:
            self.one = None
        elif word == MANY:
            self.many = None
        else:
            del self.edges[word]

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

    Matching visits each node at most once for a key, whatever the key, and never visits a binding whose first words
    differ from the key's.
    """

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Node[Target] = _Node()

    def __bool__(self) -> bool:
        """Return whether anything is bound."""
        return bool(self._root)

    def add(self, pattern: Pattern, target: Target) -> None:
        """Bind a target. Binding it again has no effect."""
        node = self._root
        for word in pattern.words:
            node = node.grow(word)
        node.add(target)

    def remove(self, pattern: Pattern, target: Target) -> None:
        """Unbind a target, and drop the nodes that no binding needs. Unbinding an unbound target has no effect."""
        path = [self._root]
        for word in pattern.words:
            child = path[-1].child(word)
            if child is None:
                return
            path.append(child)
        path[-1].discard(target)
        for word in reversed(pattern.words):
            if path.pop():
                return
            path[-1].prune(word)

    def matching(self, key: RoutingKey) -> list[Target]:
        """Return every target with a binding that matches, each once."""
        # A `*` or `#` in a key is an ordinary word, which a pattern can match only with a wildcard; no edge has it.
        words = words_of(key)
        here = [self._root]
        many = [] if self._root.many is None else [(self._root.many, 0)]
        for number, word in enumerate(words, 1):
            after = []
            for node in here:
                child = node.edges.get(word)
                if child is not None:
                    after.append(child)
                    if child.many is not None:
                        many.append((child.many, number))
                child = node.one
                if child is not None:
                    after.append(child)
                    if child.many is not None:
                        many.append((child.many, number))
            here = after
        if many:
            _add_behind(many, words, here)
        return _targets(here)


def _add_behind(many: Sequence[tuple[_Node[Target], int]], words: Sequence[str], found: list[_Node[Target]]) -> None:
    """Add `#` nodes and the nodes behind them that a key ends at. Each `#` node has the number of words before it."""
    waiting = []
    known = words if len(many) <= FEW else set(words)
    for node, number in many:
        if node.one is not None or node.many is not None or not node.edges.keys().isdisjoint(known):
            waiting.append((node, -1 << number))
        else:
            found.append(node)
    if waiting:
        places: dict[str, int] = {}
        end = 1
        for word in words:
            end <<= 1
            places[word] = places.get(word, 0) | end
        _walk(waiting, places, end, found)


def _walk(
    waiting: list[tuple[_Node[Target], int]], places: Mapping[str, int], end: int, found: list[_Node[Target]]
) -> None:
    """Add the nodes that a key ends at, of nodes and all behind them.

    Behind a `#` a node may be reached after different numbers of words. They are the bits of one integer, so that no
    node is visited twice, however many words a key repeats. `places` are those bits of each word, and `end` is the last
    one.
    """
    every = 2 * end - 1
    while waiting:
        node, reached = waiting.pop()
        if reached & end:
            found.append(node)
        if node.many is not None:
            waiting.append((node.many, -(reached & -reached)))
        after = (reached << 1) & every
        if node.one is not None and after:
            waiting.append((node.one, after))
        for word in node.edges if len(node.edges) < len(places) else places:
            if word in node.edges and word in places:
                then = places[word] & after
                if then:
                    waiting.append((node.edges[word], then))


def _targets(nodes: Sequence[_Node[Target]]) -> list[Target]:
    """Return the targets of nodes, each once."""
    found = [node.targets for node in nodes if node.targets]
    return list(dict.fromkeys(chain.from_iterable(found)) if len(found) > 1 else found[0] if found else ())
