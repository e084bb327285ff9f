"""Filters of sessions, with mirrord's semantics: which messages a session claims, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from signalbox.errors import RejectedError
from signalbox.splitting.model.message import Subject


class InvalidExpression(RejectedError):
    """Raised when a regular expression or a jq program cannot be compiled."""


class ProgramFailed(RejectedError):
    """Raised when a jq program ends with an error, such as `fromjson` on a body that is not JSON."""


class FilterTooSlow(RejectedError):
    """Raised when a filter takes more time or memory than a filter may; its session is cancelled."""


class Pattern(Protocol):
    """A compiled regular expression."""

    def matches(self, text: str) -> bool:
        """Say whether the pattern is found anywhere in a text. Raises `FilterTooSlow`."""
        ...

    def span(self, text: str) -> tuple[int, int] | None:
        """Return where the group `value`, else the first group, stands in a text. Raises `FilterTooSlow`."""
        ...


class Program(Protocol):
    """A compiled jq program."""

    def outputs(self, document: object) -> Sequence[object]:
        """Return what the program makes of a document. Raises `ProgramFailed` and `FilterTooSlow`."""
        ...


class Compiler(Protocol):
    """Makes patterns and programs; both raise `InvalidExpression` with the reason."""

    def pattern(self, text: str, *, case_sensitive: bool) -> Pattern:
        """Return a compiled regular expression."""
        ...

    def program(self, text: str) -> Program:
        """Return a compiled jq program."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a filter claims a message, and why; never with anything out of the message."""

    matches: bool
    reason: str


class Filter(Protocol):
    """Something that claims messages or not."""

    def verdict(self, subject: Subject) -> Verdict:
        """Return whether the message is claimed, and why. Raises `FilterTooSlow`."""
        ...


@dataclass(frozen=True, slots=True)
class AttributePattern:
    """One entry of a `message_filter`: an attribute's name, in any case, and a pattern for its value.

    Its verdicts are made once: it says one of them for every message.
    """

    key: str
    pattern: Pattern
    absent: Verdict
    found: Verdict
    not_found: Verdict

    @classmethod
    def of(cls, name: str, text: str, pattern: Pattern) -> "AttributePattern":
        """Return the filter for an attribute of that name; `text` is the pattern as it is written."""
        path = f"message_filter.{name}"
        return cls(
            key=name.casefold(),
            pattern=pattern,
            absent=Verdict(matches=False, reason=f"{path}: the message has no such attribute"),
            found=Verdict(matches=True, reason=f"{path}: matches {text!r}"),
            not_found=Verdict(matches=False, reason=f"{path}: does not match {text!r}"),
        )

    def verdict(self, subject: Subject) -> Verdict:
        """Return whether an attribute of that name has a value in which the pattern is found."""
        values = subject.values.get(self.key)
        if not values:
            return self.absent
        for value in values:
            if self.pattern.matches(value):
                return self.found
        return self.not_found


@dataclass(frozen=True, slots=True)
class MetadataPattern:
    """A `metadata` filter: a pattern that is found in a line `name: value`, as they are written."""

    pattern: Pattern
    found: Verdict
    not_found: Verdict

    @classmethod
    def of(cls, path: str, text: str, pattern: Pattern) -> "MetadataPattern":
        """Return the filter that stands at `path` in a session's file; `text` is the pattern as it is written."""
        return cls(
            pattern=pattern,
            found=Verdict(matches=True, reason=f"{path}: an attribute matches {text!r}"),
            not_found=Verdict(matches=False, reason=f"{path}: no attribute matches {text!r}"),
        )

    def verdict(self, subject: Subject) -> Verdict:
        """Return whether the pattern is found in the line of any attribute."""
        for name, value in subject.lines:
            if self.pattern.matches(f"{name}: {value}"):
                return self.found
        return self.not_found


@dataclass(frozen=True, slots=True)
class ProgramFilter:
    """A `jq_filter`: claims a message if one of the program's outputs is `true` itself, and none is an error."""

    program: Program

    def verdict(self, subject: Subject) -> Verdict:
        """Return whether the program says `true` of the SQS `Message` object."""
        try:
            outputs = self.program.outputs(subject.message.document)
        except ProgramFailed:
            # Without the program's own words, which quote the message.
            return Verdict(matches=False, reason="jq_filter: ends with an error, which is no match")
        if any(output is True for output in outputs):
            return Verdict(matches=True, reason="jq_filter: says true")
        return Verdict(matches=False, reason="jq_filter: does not say true")


@dataclass(frozen=True, slots=True)
class AllOf:
    """Claims what all of its parts claim; without parts, nothing."""

    parts: tuple[Filter, ...]
    without_parts: str

    def verdict(self, subject: Subject) -> Verdict:
        """Return the first refusal, or what all parts say."""
        verdicts = []
        for part in self.parts:
            verdicts.append(part.verdict(subject))
            if not verdicts[-1].matches:
                return verdicts[-1]
        reasons = "; ".join(verdict.reason for verdict in verdicts)
        return Verdict(matches=bool(verdicts), reason=reasons or self.without_parts)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Claims what any of its parts claims."""

    parts: tuple[Filter, ...]

    def verdict(self, subject: Subject) -> Verdict:
        """Return the first claim, or all refusals."""
        refusals = []
        for part in self.parts:
            verdict = part.verdict(subject)
            if verdict.matches:
                return verdict
            refusals.append(verdict.reason)
        return Verdict(matches=False, reason="; ".join(refusals))


MATCH_NONE = AllOf((), without_parts="no filter is given, so it matches nothing")
