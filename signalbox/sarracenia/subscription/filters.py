"""Which announcements a subscriber wants: `accept` and `reject` lines, of which the first that matches counts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.announcement import Announcement


class InvalidFilter(RejectedError):
    """Raised when lines of a filter say nothing that could be followed; each problem has its line."""


class Word(StrEnum):
    """What a line of a filter begins with."""

    ACCEPT = "accept"
    REJECT = "reject"
    DIRECTORY = "directory"


class Expression(Protocol):
    """A regular expression that matches from the start of a text on."""

    def matches(self, text: str) -> bool:
        """Say whether it does."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """An `accept` or `reject` line, and the directory above it, into which what it accepts goes."""

    number: int
    word: Word
    text: str
    expression: Expression
    directory: str | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """An announcement that is wanted, and where the file goes; None where all files go."""

    directory: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An announcement that is not wanted, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Filter:
    """The lines in their order."""

    rules: tuple[Rule, ...] = ()
    accept_unmatched: bool = True
    directory: str | None = None
    """The directory of the last such line: what no line matches goes there."""

    @classmethod
    def parse(
        cls,
        lines: Iterable[tuple[str, str]],
        compiled: Callable[[str], Expression],
        *,
        accept_unmatched: bool = True,
    ) -> "Filter":
        """Return the filter of pairs of a word and its text. Raises `InvalidFilter` with all that is wrong.

        `compiled` returns an expression, or raises a `RejectedError`.
        """
        rules: list[Rule] = []
        problems: list[str] = []
        directory: str | None = None
        for number, (word, text) in enumerate(lines, 1):
            if word == Word.DIRECTORY:
                directory = text
                continue
            try:
                rules.append(Rule(number, Word(word), text, compiled(text), directory))
            except (RejectedError, ValueError) as error:
                problems.append(f"line {number}, {word}: {error}")
        if problems:
            raise InvalidFilter("\n".join(problems))
        return cls(tuple(rules), accept_unmatched, directory)

    def verdict(self, announcement: Announcement) -> Accepted | Rejected:
        """Say whether an announcement is wanted.

        Of a renamed file the new name counts: sr3 3.3.1 looks at the old one, too, and loses some of them.
        """
        url = full_url(announcement)
        rule = next((rule for rule in self.rules if rule.expression.matches(url)), None)
        if rule is not None and rule.word == Word.ACCEPT:
            return Accepted(rule.directory)
        if rule is not None:
            return Rejected(f"line {rule.number}: reject {rule.text}")
        return Accepted(self.directory) if self.accept_unmatched else Rejected("no line matches")


def full_url(announcement: Announcement) -> str:
    """Return the URL that a file has by its path, with one slash between the base and it."""
    return joined(announcement.base_url, announcement.path)


def joined(base_url: str, path: str) -> str:
    """Return a base URL and a path with one slash between them; neither is escaped."""
    if base_url.endswith("/") and path.startswith("/"):
        return base_url + path[1:]
    return base_url + path if base_url.endswith("/") or path.startswith("/") else f"{base_url}/{path}"
