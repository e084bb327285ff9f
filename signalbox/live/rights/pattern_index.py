"""An index of the patterns of grants: a check costs the words of a topic, and not the number of patterns."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.live.rights.coverage import GROUP, PLACEHOLDERS, USER
from signalbox.live.rights.principals import Subject
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

Value = TypeVar("Value", bound=Hashable)
HOLE = ""  # a component of a wildcard


@dataclass(frozen=True, slots=True)
class Entry(Generic[Value]):
    """A pattern with its values."""

    pattern: TopicPattern
    values: set[Value] = field(default_factory=set)


@dataclass(slots=True)
class _Node(Generic[Value]):
    """A node of a tree by components; `prefixes` are those whose last component is the beginning of the next word."""

    children: "dict[str, _Node[Value]]" = field(default_factory=dict)
    prefixes: dict[str, Entry[Value]] = field(default_factory=dict)
    end: Entry[Value] | None = None


@dataclass(frozen=True, slots=True)
class PatternIndex(Generic[Value]):
    """The values of patterns, which may have placeholders; it answers as `coverage` does for each pattern."""

    _roots: dict[MatchPolicy, _Node[Value]] = field(default_factory=lambda: {match: _Node() for match in MatchPolicy})

    def add(self, pattern: TopicPattern, value: Value) -> None:
        """Add a value to a pattern."""
        *components, last = pattern.uri.split(".")
        node = self._roots[pattern.match]
        for component in components:
            node = node.children.setdefault(component, _Node())
        if pattern.match is MatchPolicy.PREFIX:
            node.prefixes.setdefault(last, Entry(pattern)).values.add(value)
            return
        node = node.children.setdefault(last, _Node())
        node.end = node.end or Entry(pattern)
        node.end.values.add(value)

    def matching(self, topic: RoutingKey, subject: Subject) -> Iterator[Entry[Value]]:
        """Yield the patterns that match a topic for a session."""
        yield from self._equal(MatchPolicy.EXACT, topic.split("."), subject)
        yield from self._equal(MatchPolicy.WILDCARD, words_of(topic), subject)
        yield from self._beginning(topic.split("."), subject)

    def covering(self, requested: TopicPattern, subject: Subject) -> Iterator[Entry[Value]]:
        """Yield the patterns that match every topic which a subscription's pattern can match."""
        components = requested.uri.split(".")
        if requested.match is MatchPolicy.EXACT or (requested.match is MatchPolicy.WILDCARD and HOLE not in components):
            yield from self.matching(RoutingKey(requested.uri), subject)
            return
        if requested.match is MatchPolicy.WILDCARD:
            yield from self._equal(MatchPolicy.WILDCARD, components, subject)
        yield from self._beginning(requested.literal_prefix.split("."), subject)

    def _equal(self, match: MatchPolicy, words: Sequence[str], subject: Subject) -> Iterator[Entry[Value]]:
        *_, last = _levels(self._roots[match], words, subject, has_holes=match is MatchPolicy.WILDCARD)
        for node in last:
            if node.end is not None:
                yield node.end

    def _beginning(self, words: Sequence[str], subject: Subject) -> Iterator[Entry[Value]]:
        levels = _levels(self._roots[MatchPolicy.PREFIX], words, subject, has_holes=False)
        for word, nodes in zip(words, levels, strict=False):
            for node in nodes:
                if node.prefixes:
                    beginnings = (word[:length] for length in range(len(word) + 1))
                    yield from (node.prefixes[one] for one in beginnings if one in node.prefixes)


def _levels(
    root: _Node[Value], words: Sequence[str], subject: Subject, *, has_holes: bool
) -> Iterator[Sequence[_Node[Value]]]:
    """Yield the nodes whose components are the first words, of each number of words."""
    nodes = [root]
    yield nodes
    for word in words:
        components = _components(word, subject, has_holes=has_holes)
        nodes = [node.children[one] for node in nodes for one in components if one in node.children]
        yield nodes


def _components(word: str, subject: Subject, *, has_holes: bool) -> list[str]:
    """Return the components that are a word for a session."""
    found = [word] if word not in PLACEHOLDERS and (word or not has_holes) else []
    if word and word == subject.word:
        found.append(USER)
    if word in subject.group_words:
        found.append(GROUP)
    return [*found, HOLE] if has_holes else found
