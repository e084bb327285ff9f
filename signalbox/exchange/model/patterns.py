"""Binding patterns: routing keys in which whole words may be wildcards."""

from collections.abc import Iterator
from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.exchange.model.topics import short_string_problem, shown, words_of

ONE = "*"  # exactly one word
MANY = "#"  # zero or more words
WILDCARDS = frozenset((ONE, MANY))
MAXIMUM_MANY = 2  # RabbitMQ since 4.3.5, for new bindings
FIRST_PLACE, LAST_PLACE = "", chr(0x10FFFF)  # before and behind the places of all first words


class InvalidPattern(RejectedError):
    """Raised when a text is not valid as the pattern of a new binding."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A binding's pattern. A wildcard is one only as a whole word."""

    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Return the pattern of a new binding. Raises `InvalidPattern` with all problems."""
        problems = list(_problems(text))
        if problems:
            raise InvalidPattern(f"pattern {shown(text)} {'; and it '.join(problems)}")
        return cls.stored(text)

    @classmethod
    def stored(cls, text: str) -> "Pattern":
        """Return the pattern of a stored binding: as in RabbitMQ, one with more `#` than allowed still routes."""
        return cls(tuple(words_of(text)))

    def __str__(self) -> str:
        return ".".join(self.words)


def place_of(first_word: str) -> str:
    """Return the place of a first word among all, by which the stored bindings are sorted.

    Two that differ only in spaces and line feeds have one place.
    """
    return first_word.replace("\n", " ") + "\n"


def _problems(text: str) -> Iterator[str]:
    problem = short_string_problem(text)
    if problem:
        yield problem
    many = words_of(text).count(MANY)
    if many > MAXIMUM_MANY:
        yield f"uses {MANY!r} {many} times; at most {MAXIMUM_MANY} are allowed in a new binding"
