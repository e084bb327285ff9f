"""An index of topic patterns that finds the subscriptions matching a topic."""

from collections import Counter
from collections.abc import Collection, Hashable
from itertools import chain
from typing import Generic, TypeVar

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import MANY, ONE, Pattern
from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

Target = TypeVar("Target", bound=Hashable)


class SubscriptionIndex(Generic[Target]):
    """The targets of topic patterns. A target is any hashable value.

    Patterns that do not match cost nothing: exact topics are looked up in a dictionary, prefixes in one per distinct
    prefix length (at most 256), and wildcards in the exchange's binding trie.
    """

    __slots__ = ("_exact", "_prefixes", "_wildcards")

    def __init__(self) -> None:
        self._exact: dict[str, dict[Target, None]] = {}
        self._prefixes: _PrefixIndex[Target] = _PrefixIndex()
        self._wildcards: BindingTrie[Target] = BindingTrie()

    def add(self, pattern: TopicPattern, target: Target) -> None:
        """Add a target to a pattern. Idempotent."""
        if pattern.match is MatchPolicy.EXACT:
            self._exact.setdefault(pattern.uri, {})[target] = None
        elif pattern.match is MatchPolicy.PREFIX:
            self._prefixes.add(pattern.uri, target)
        else:
            self._wildcards.add(_binding(pattern), target)

    def remove(self, pattern: TopicPattern, target: Target) -> None:
        """Remove a target from a pattern. Idempotent."""
        if pattern.match is MatchPolicy.EXACT:
            _discard(self._exact, pattern.uri, target)
        elif pattern.match is MatchPolicy.PREFIX:
            self._prefixes.remove(pattern.uri, target)
        else:
            self._wildcards.remove(_binding(pattern), target)

    def matching(self, topic: RoutingKey) -> list[Target]:
        """Return every target with a matching pattern, each once."""
        found: list[Collection[Target]] = []
        exact = self._exact.get(topic)
        if exact:
            found.append(exact)
        found += self._prefixes.matching(topic)
        if self._wildcards:
            found.append(self._wildcards.matching(_key(topic)))
        if len(found) == 1:
            return list(found[0])
        return list(dict.fromkeys(chain.from_iterable(found)))


class _PrefixIndex(Generic[Target]):
    """Targets by prefix, and the number of prefixes of each length."""

    __slots__ = ("_counts", "_lengths", "_targets")

    def __init__(self) -> None:
        self._targets: dict[str, dict[Target, None]] = {}
        self._counts: Counter[int] = Counter()
        self._lengths: list[int] = []  # in ascending order

    def add(self, prefix: str, target: Target) -> None:
        if prefix not in self._targets:
            self._counts[len(prefix)] += 1
            if self._counts[len(prefix)] == 1:
                self._lengths = sorted(self._counts)
        self._targets.setdefault(prefix, {})[target] = None

    def remove(self, prefix: str, target: Target) -> None:
        if not _discard(self._targets, prefix, target):
            return
        self._counts[len(prefix)] -= 1
        if not self._counts[len(prefix)]:
            del self._counts[len(prefix)]
            self._lengths = sorted(self._counts)

    def matching(self, topic: str) -> list[dict[Target, None]]:
        """Return the targets of each prefix that a topic has."""
        found, size, targets = [], len(topic), self._targets
        for length in self._lengths:
            if length > size:
                break
            of_prefix = targets.get(topic[:length])
            if of_prefix is not None:
                found.append(of_prefix)
        return found


def _discard(targets: dict[str, dict[Target, None]], text: str, target: Target) -> bool:
    """Remove a target from a text; return whether it was the last one."""
    found = targets.get(text)
    if found is None or target not in found:
        return False
    del found[target]
    if not found:
        del targets[text]
    return not found


# The trie's wildcards may occur as components of a topic: `*` is an ordinary component in WAMP, and a topic published
# over SQS may have either. A `#` prefix, which no URI has, escapes them, and words that begin with `#`, for the trie.
def _escaped(word: str) -> str:
    return MANY + word if word == ONE or word.startswith(MANY) else word


def _binding(pattern: TopicPattern) -> Pattern:
    return Pattern(tuple(_escaped(word) if word else ONE for word in pattern.uri.split(".")))


def _key(topic: RoutingKey) -> RoutingKey:
    if ONE not in topic and MANY not in topic:
        return topic
    return RoutingKey(".".join(map(_escaped, words_of(topic))))
