"""A subscriber's filter: `accept` and `reject` lines, of which the first match decides."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.announcement import Announcement


class InvalidFilter(RejectedError):
    """Raised for filter lines that are invalid; each problem has its line."""


class FilterKeyword(StrEnum):
    """The keyword of a filter line."""

    ACCEPT = "accept"
    REJECT = "reject"
    DIRECTORY = "directory"


class Expression(Protocol):
    """A regular expression that is anchored at the beginning of the text."""

    def matches(self, text: str) -> bool:
        """Return whether the expression matches a text from its beginning."""
        ...


@dataclass(frozen=True, slots=True)
class FilterRule:
    """An `accept` or `reject` line; files that it accepts go to `directory`, set by the last such line above it."""

    number: int
    keyword: FilterKeyword
    text: str
    expression: Expression
    directory: str | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The verdict on an accepted announcement; its file goes to `directory`, or to the default one for None."""

    directory: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The verdict on a rejected announcement, with its reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class FileFilter:
    """The lines of a filter, in order."""

    rules: tuple[FilterRule, ...] = ()
    accept_unmatched: bool = True
    directory: str | None = None
    """The directory of the last `directory` line, for files that no line matches."""

    @classmethod
    def parse(
        cls,
        lines: Iterable[tuple[str, str]],
        compiled: Callable[[str], Expression],
        *,
        accept_unmatched: bool = True,
    ) -> "FileFilter":
        """Parse pairs of a keyword and its text. Raises `InvalidFilter` with all problems.

        `compiled` returns the expression of a text, or raises a `RejectedError`.
        """
        rules: list[FilterRule] = []
        problems: list[str] = []
        directory: str | None = None
        for number, (keyword, text) in enumerate(lines, 1):
            if keyword == FilterKeyword.DIRECTORY:
                directory = text
                continue
            try:
                rules.append(FilterRule(number, FilterKeyword(keyword), text, compiled(text), directory))
            except (RejectedError, ValueError) as error:
                problems.append(f"line {number}, {keyword}: {error}")
        if problems:
            raise InvalidFilter("\n".join(problems))
        return cls(tuple(rules), accept_unmatched, directory)

    def verdict(self, announcement: Announcement) -> Accepted | Rejected:
        """Return the verdict on an announcement.

        For a renamed file the new name decides; sr3 3.3.1 also tests the old name, and loses some renames.
        """
        url = full_url(announcement)
        rule = next((rule for rule in self.rules if rule.expression.matches(url)), None)
        if rule is not None and rule.keyword == FilterKeyword.ACCEPT:
            return Accepted(rule.directory)
        if rule is not None:
            return Rejected(f"line {rule.number}: reject {rule.text}")
        return Accepted(self.directory) if self.accept_unmatched else Rejected("no line matches")


def full_url(announcement: Announcement) -> str:
    """Return the base URL and path of an announcement, joined by one slash."""
    return join_url(announcement.base_url, announcement.path)


def join_url(base_url: str, path: str) -> str:
    """Join a base URL and a path by one slash, without escaping either."""
    if base_url.endswith("/") and path.startswith("/"):
        return base_url + path[1:]
    return base_url + path if base_url.endswith("/") or path.startswith("/") else f"{base_url}/{path}"
