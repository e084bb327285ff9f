"""Which topics and subscriptions the pattern of a grant matches for a session.

A pattern of a grant may have placeholders as whole words: `{user}` represents the session's own name, `{group}` any
of its groups. They are compared word by word with the session's names, so the time does not grow with the number of
groups. The last word of a prefix is no placeholder: as text, the name of a group is also the beginning of longer names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from signalbox.exchange.model.topics import RoutingKey, shown, words_of
from signalbox.live.rights.principals import Subject
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri

USER, GROUP = "{user}", "{group}"
PLACEHOLDERS = frozenset({USER, GROUP})
MARK = "{"  # in each placeholder; most patterns have none and are compared as they are


def check_placeholders(pattern: TopicPattern) -> None:
    """Raise `InvalidUri` if a placeholder is a part of a word, or the last word of a prefix."""
    for word in pattern.uri.split("."):
        if word not in PLACEHOLDERS and any(placeholder in word for placeholder in PLACEHOLDERS):
            raise InvalidUri(f"topic {shown(pattern.uri)}: {USER} and {GROUP} are whole words, between dots")
    if pattern.match is MatchPolicy.PREFIX and pattern.uri.rpartition(".")[2] in PLACEHOLDERS:
        raise InvalidUri(f"prefix {shown(pattern.uri)} would match longer names, too: end it with a dot")


def matches(pattern: TopicPattern, topic: RoutingKey, subject: Subject) -> bool:
    """Return whether a grant's pattern matches a topic for a session."""
    if MARK not in pattern.uri:
        return pattern.matches(topic)
    components, words = pattern.uri.split("."), words_of(topic)
    if pattern.match is MatchPolicy.PREFIX:
        return _is_beginning(components, words, subject)
    is_wildcard = pattern.match is MatchPolicy.WILDCARD
    return len(components) == len(words) and all(
        (is_wildcard and not component) or _is_word(component, word, subject)
        for component, word in zip(components, words, strict=True)
    )


def beginning(pattern: TopicPattern) -> str:
    """Return a text with which every topic begins that a grant's pattern matches for any session."""
    words = pattern.literal_prefix.split(".")
    fixed = list(takewhile(lambda word: word not in PLACEHOLDERS, words))
    return ".".join(fixed) if fixed == words else "".join(f"{word}." for word in fixed)


def covers(grant: TopicPattern, requested: TopicPattern, subject: Subject) -> bool:
    """Return whether a grant's pattern matches every topic that a subscription's pattern can match."""
    components = requested.uri.split(".")
    if requested.match is MatchPolicy.EXACT or (requested.match is MatchPolicy.WILDCARD and "" not in components):
        return matches(grant, RoutingKey(requested.uri), subject)
    if grant.match is MatchPolicy.PREFIX:
        return _is_beginning(grant.uri.split("."), requested.literal_prefix.split("."), subject)
    if grant.match is MatchPolicy.EXACT or requested.match is MatchPolicy.PREFIX:
        return False
    holes = grant.uri.split(".")
    return len(holes) == len(components) and all(
        not hole or _is_word(hole, component, subject) for hole, component in zip(holes, components, strict=True)
    )


def may_overlap(one: TopicPattern, other: TopicPattern) -> bool:
    """Return whether there may be a topic that both patterns match, for any session; a placeholder is any word."""
    first, second = _Components.of(one), _Components.of(other)
    for number, (component, counterpart) in enumerate(zip(first.texts, second.texts, strict=False)):
        if not (first.is_open(number) or second.is_open(number) or component == counterpart):
            begins = (first.is_last_of_prefix(number) and counterpart.startswith(component)) or (
                second.is_last_of_prefix(number) and component.startswith(counterpart)
            )
            if not begins:
                return False
        if first.is_last_of_prefix(number) or second.is_last_of_prefix(number):
            return True
    return len(first.texts) == len(second.texts)


@dataclass(frozen=True, slots=True)
class _Components:
    """The words of a pattern; the last one of a prefix is the beginning of a word."""

    texts: Sequence[str]
    match: MatchPolicy

    @classmethod
    def of(cls, pattern: TopicPattern) -> "_Components":
        return cls(pattern.uri.split("."), pattern.match)

    def is_open(self, number: int) -> bool:
        """Return whether more than one word may be in a place."""
        text = self.texts[number]
        return text in PLACEHOLDERS or (not text and self.match is MatchPolicy.WILDCARD)

    def is_last_of_prefix(self, number: int) -> bool:
        return self.match is MatchPolicy.PREFIX and number == len(self.texts) - 1


def _is_beginning(components: Sequence[str], words: Sequence[str], subject: Subject) -> bool:
    """Return whether the components of a prefix begin a topic, or a longer prefix, of these words."""
    last = len(components) - 1
    return (
        len(words) > last
        and words[last].startswith(components[last])
        and all(_is_word(component, word, subject) for component, word in zip(components[:last], words, strict=False))
    )


def _is_word(component: str, word: str, subject: Subject) -> bool:
    if component == GROUP:
        return word in subject.group_words
    # The name of a session is never empty, and an empty word of a subscription is any word.
    return bool(word) and word == subject.word if component == USER else component == word
