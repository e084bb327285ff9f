"""Regular expressions of users: RE2 in linear time, else a backtracking engine with a time limit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import re2

from signalbox.splitting.forwarding.filters import FilterTooSlow, InvalidExpression, Pattern

if TYPE_CHECKING:
    from regex import Pattern as Backtracking

TIME_LIMIT = timedelta(seconds=1)
MAXIMUM_PATTERN_CHARACTERS = 10_000
# RE2 refuses these because of their cost, so the other engine must not try them either.
TOO_COSTLY = (b"invalid repetition size", b"pattern too large")
NAMED_GROUP = "value"
ESCAPE = re.compile(r"\\(?:k<(\w+)>|.)", re.DOTALL)
SPELLINGS = {r"\z": r"\Z"}


class _Match(Protocol):
    """A match of either engine."""

    def span(self, group: int = 0, /) -> tuple[int, int]: ...


class _Linear(Protocol):
    """A compiled RE2 pattern; the package has no types."""

    groups: int
    groupindex: Mapping[str, int]

    def search(self, text: str | bytes) -> _Match | None: ...


def compile_pattern(text: str, *, case_sensitive: bool, time_limit: timedelta = TIME_LIMIT) -> Pattern:
    """Return a pattern that searches a text within `time_limit`. Raises `InvalidExpression`."""
    if len(text) > MAXIMUM_PATTERN_CHARACTERS:
        raise InvalidExpression(
            f"{len(text)} characters are too many; at most {MAXIMUM_PATTERN_CHARACTERS} are allowed"
        )
    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.log_errors = False
    try:
        return LinearPattern(re2.compile(_encodable(text), options))
    except re2.error as error:
        reason: bytes = error.args[0]
    if reason.startswith(TOO_COSTLY):
        raise InvalidExpression(f"{text!r}: {reason.decode(errors='replace')}")
    return _bounded(text, case_sensitive=case_sensitive, time_limit=time_limit)


def _bounded(text: str, *, case_sensitive: bool, time_limit: timedelta) -> Pattern:
    import regex  # noqa: PLC0415 - rarely needed, and it takes as long to load as everything else together

    # Version 1: an inline flag applies from its position on, as in the engine that mirrord uses.
    flags = regex.VERSION1 | (0 if case_sensitive else regex.IGNORECASE)
    try:
        return BoundedPattern(text, regex.compile(_translated(text), flags), time_limit)
    except regex.error as error:
        raise InvalidExpression(f"{text!r}: {error}") from error


def _translated(text: str) -> str:
    """Return a pattern of Rust's dialect, which mirrord's users write, in the syntax of `regex`."""
    return ESCAPE.sub(lambda found: f"(?P={found[1]})" if found[1] else SPELLINGS.get(found[0], found[0]), text)


@dataclass(frozen=True, slots=True)
class LinearPattern:
    """A pattern that is searched in linear time."""

    compiled: _Linear

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text."""
        # For bytes, the package skips counting characters, which takes longer than the search.
        return self.compiled.search(text.encode(errors="replace")) is not None

    def span(self, text: str) -> tuple[int, int] | None:
        """Return the span of the group `value`, else of the first group, in a text."""
        match = self.compiled.search(_encodable(text))
        return _span(match, _group(self.compiled.groups, self.compiled.groupindex))


@dataclass(frozen=True, slots=True)
class BoundedPattern:
    """A pattern with look-around, back-references or similar, which is given up after `time_limit`."""

    text: str
    compiled: "Backtracking[str]"
    time_limit: timedelta

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text. Raises `FilterTooSlow`."""
        return self._search(text) is not None

    def span(self, text: str) -> tuple[int, int] | None:
        """Return the span of the group `value`, else of the first group, in a text. Raises `FilterTooSlow`."""
        return _span(self._search(text), _group(self.compiled.groups, self.compiled.groupindex))

    def _search(self, text: str) -> _Match | None:
        seconds = self.time_limit.total_seconds()
        try:
            return self.compiled.search(text, timeout=seconds)
        except TimeoutError as error:
            raise FilterTooSlow(f"pattern {self.text!r} took longer than {seconds:g} s") from error


def _group(groups: int, names: Mapping[str, int]) -> int:
    return names.get(NAMED_GROUP, min(groups, 1))


def _span(match: _Match | None, group: int) -> tuple[int, int] | None:
    span = match.span(group) if match else (-1, -1)
    return None if span[0] < 0 else span


def _encodable(text: str) -> str:
    # JSON may contain half of a surrogate pair, which UTF-8 cannot encode; a replacement character keeps spans right.
    return text if text.isascii() else text.encode(errors="replace").decode()
