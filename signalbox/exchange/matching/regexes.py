"""Regular expressions of binding patterns, for SQL engines: their syntax is common to Java, RE2 and Python.

They are searched in the frame of a topic: `>`, each word followed by a dot, and `<`. So the key without words has a
frame of its own, a match is never the empty text, and no engine takes a line break at the end of a key for its end.
"""

from collections.abc import Sequence

from signalbox.exchange.model.patterns import MANY, ONE, Pattern
from signalbox.exchange.model.topics import words_of

SPECIAL = frozenset("\\^$|?*+()[]{}")
WORD, DOT = "[^.]*", "[.]"


def framed(topic: str) -> str:
    """Return the frame of a topic."""
    return f">{''.join(f'{word}.' for word in words_of(topic))}<"


def pattern_regex(pattern: Pattern) -> str:
    """Return the regular expression that is found in the frames of the keys that a pattern matches."""
    return words_regex([_of_word(word) for word in pattern.words])


def words_regex(words: Sequence[str]) -> str:
    """Return the regular expression of a whole frame, given those of its words, each with its dot."""
    return f"^>{''.join(words)}<$"


def escaped(text: str) -> str:
    """Return the regular expression of a text without dots."""
    return "".join(f"\\{character}" if character in SPECIAL else character for character in text)


def _of_word(word: str) -> str:
    if word == MANY:
        return f"({WORD}{DOT})*"
    return f"{WORD if word == ONE else escaped(word)}{DOT}"
