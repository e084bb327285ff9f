"""The matcher: all subscriptions of a realm in one index, asked once an event."""

from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import MANY, ONE, Pattern
from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

Target = TypeVar("Target", bound=Hashable)


class SubscriptionIndex(Generic[Target]):
    """Who subscribed to what; a target is anything that can be told from another.

    What does not match costs nothing: an exact topic and a prefix are looked up by their text, a prefix once for each
    length that there is (at most 256), and wildcards are the exchange's own, in its tree.
    """

    __slots__ = ("_exact", "_prefixes", "_wildcards")

    def __init__(self) -> None:
        self._exact: dict[str, dict[Target, None]] = {}
        self._prefixes: _PrefixIndex[Target] = _PrefixIndex()
        self._wildcards: BindingTrie[Target] = BindingTrie()

    def add(self, pattern: TopicPattern, target: Target) -> None:
        """Subscribe a target; one that is subscribed already stays so once."""
        if pattern.match is MatchPolicy.EXACT:
            self._exact.setdefault(pattern.uri, {})[target] = None
        elif pattern.match is MatchPolicy.PREFIX:
            self._prefixes.add(pattern.uri, target)
        else:
            self._wildcards.add(_binding(pattern), target)

    def remove(self, pattern: TopicPattern, target: Target) -> None:
        """Unsubscribe a target; one that is not subscribed stays so."""
        if pattern.match is MatchPolicy.EXACT:
            _discard(self._exact, pattern.uri, target)
        elif pattern.match is MatchPolicy.PREFIX:
            self._prefixes.remove(pattern.uri, target)
        else:
            self._wildcards.remove(_binding(pattern), target)

    def matching(self, topic: RoutingKey) -> list[Target]:
        """Return every target with a pattern that matches, each once."""
        found = chain(self._exact.get(topic, ()), self._prefixes.matching(topic), self._wildcards.matching(_key(topic)))
        return list(dict.fromkeys(found))


class _PrefixIndex(Generic[Target]):
    """Prefixes by their text, and how many there are of each length."""

    __slots__ = ("_lengths", "_targets")

    def __init__(self) -> None:
        self._targets: dict[str, dict[Target, None]] = {}
        self._lengths: Counter[int] = Counter()

    def add(self, prefix: str, target: Target) -> None:
        if prefix not in self._targets:
            self._lengths[len(prefix)] += 1
        self._targets.setdefault(prefix, {})[target] = None

    def remove(self, prefix: str, target: Target) -> None:
        if not _discard(self._targets, prefix, target):
            return
        self._lengths[len(prefix)] -= 1
        if not self._lengths[len(prefix)]:
            del self._lengths[len(prefix)]

    def matching(self, topic: str) -> Iterator[Target]:
        for length in self._lengths:
            if length <= len(topic):
                yield from self._targets.get(topic[:length], ())


def _discard(targets: dict[str, dict[Target, None]], text: str, target: Target) -> bool:
    """Take a target away from a text; say whether it was the last."""
    there = targets.get(text)
    if there is None or target not in there:
        return False
    del there[target]
    if not there:
        del targets[text]
    return not there


# The tree's wildcards are words that a topic may have: `*` is a component like any other in WAMP, and SQS takes all.
# Behind a `#`, which no URI has, they and what looks like their disguise are words to the tree.
def _disguised(word: str) -> str:
    return MANY + word if word == ONE or word.startswith(MANY) else word


def _binding(pattern: TopicPattern) -> Pattern:
    return Pattern(tuple(_disguised(word) if word else ONE for word in pattern.uri.split(".")))


def _key(topic: RoutingKey) -> RoutingKey:
    if ONE not in topic and MANY not in topic:
        return topic
    return RoutingKey(".".join(map(_disguised, words_of(topic))))
