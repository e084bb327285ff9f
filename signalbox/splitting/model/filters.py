"""Session filters with mirrord's semantics: which messages a session claims, and the reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from signalbox.errors import RejectedError
from signalbox.splitting.model.filter_input import FilterInput
from signalbox.splitting.model.s3_objects import METADATA


class InvalidExpression(RejectedError):
    """Raised when a regular expression or a jq program cannot be compiled."""


class ProgramFailed(RejectedError):
    """Raised when a jq program ends with an error, such as `fromjson` on a body that is not JSON."""


class FilterStopped(RejectedError):
    """Raised when a filter exceeds its time or memory, or breaks its engine; its session is ended.

    Also for a pattern that cannot search a text, since what a value is must not be disclosed.
    """


Span = tuple[int, int]

STEPS = 1_000_000
"""The steps of small patterns that are searched without a clock: at most 10 ms (measured, with the worst of them)."""
OWNER_BYTES = 32_000_000
"""The memory of the small patterns of one owner; others are compiled and searched in the sandbox."""


@dataclass(slots=True)
class FilterUse:
    """The CPU time that one owner's patterns and programs use together; at most `limit_seconds`.

    The defaults have no limit but the one of each request to an engine.
    """

    limit_seconds: float = math.inf
    seconds: float = 0.0
    elapsed_seconds: float = 0.0
    steps: float = STEPS
    pattern_bytes: float = OWNER_BYTES


class CompiledPattern(Protocol):
    """A compiled regular expression."""

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text. Raises `FilterStopped`."""


class Capture(Protocol):
    """A regular expression that finds a name within a text."""

    def span(self, text: str) -> Span | None:
        """Return the span of the group `value`, else of the first group. Raises `FilterStopped`."""


class CompiledProgram(Protocol):
    """A compiled jq program."""

    def decision(self, document: object) -> bool | None:
        """Return the first output that is true or false. Raises `ProgramFailed` and `FilterStopped`."""

    def texts(self, document: object) -> list[str]:
        """Return the outputs that are texts. Raises `ProgramFailed` and `FilterStopped`."""


class Compiler(Protocol):
    """Compiles patterns and programs. The methods that do raise `InvalidExpression` with the reason."""

    def begin(self, use: FilterUse) -> FilterUse:
        """Charge further compilations and evaluations to `use`; return the one charged before."""

    def pattern(self, text: str, *, case_sensitive: bool) -> CompiledPattern:
        """Return a compiled regular expression."""

    def capture(self, text: str) -> Capture:
        """Return a regular expression that finds a name within a text."""

    def program(self, text: str) -> CompiledProgram:
        """Return a compiled jq program."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A filter's decision on a message with its reason, which contains nothing of the message."""

    matches: bool
    reason: str


class Filter(Protocol):
    """A filter of messages."""

    def verdict(self, filter_input: FilterInput) -> Verdict:
        """Return whether the message is claimed, and the reason. Raises `FilterStopped`."""


@dataclass(frozen=True, slots=True)
class AttributePattern:
    """One entry of a `message_filter`: the name of an attribute, in any case, and a pattern for its value.

    Its three possible verdicts are built once and shared by all messages.
    """

    key: str
    pattern: CompiledPattern
    absent: Verdict
    found: Verdict
    not_found: Verdict

    @classmethod
    def of(cls, name: str, text: str, pattern: CompiledPattern) -> "AttributePattern":
        """Return the filter for an attribute name; `text` is the source of the pattern."""
        path = f"message_filter.{name}"
        return cls(
            key=name.casefold(),
            pattern=pattern,
            absent=Verdict(matches=False, reason=f"{path}: the message has no such attribute"),
            found=Verdict(matches=True, reason=f"{path}: matches {text!r}"),
            not_found=Verdict(matches=False, reason=f"{path}: does not match {text!r}"),
        )

    def verdict(self, filter_input: FilterInput) -> Verdict:
        """Return the verdict: a match if the pattern is found in a value of an attribute of that name."""
        values = filter_input.values.get(self.key)
        if not values:
            return self.absent
        for value in values:
            if self.pattern.matches(value):
                return self.found
        return self.not_found


@dataclass(frozen=True, slots=True)
class MetadataPattern:
    """A `metadata` filter: a pattern that is searched in lines of the form `name: value`; case matters."""

    pattern: CompiledPattern
    found: Verdict
    not_found: Verdict

    @classmethod
    def of(cls, path: str, text: str, pattern: CompiledPattern) -> "MetadataPattern":
        """Return the filter; `path` is its position in the session's file and `text` the source of the pattern."""
        return cls(
            pattern=pattern,
            found=Verdict(matches=True, reason=f"{path}: an attribute matches {text!r}"),
            not_found=Verdict(matches=False, reason=f"{path}: no attribute matches {text!r}"),
        )

    def verdict(self, filter_input: FilterInput) -> Verdict:
        """Return the verdict: a match if the pattern is found in the line of any attribute."""
        for name, value in filter_input.lines:
            if self.pattern.matches(f"{name}: {value}"):
                return self.found
        return self.not_found


@dataclass(frozen=True, slots=True)
class ProgramFilter:
    """A `jq_filter`, which claims a message if the first output of the program that is a boolean is `true`.

    A program that contains the word `S3Metadata` is given the metadata of S3 objects, as in mirrord.
    """

    program: CompiledProgram
    uses_metadata: bool = False

    @classmethod
    def of(cls, text: str, program: CompiledProgram) -> "ProgramFilter":
        """Return the filter; `text` is the source of the program."""
        return cls(program, METADATA in text)

    def verdict(self, filter_input: FilterInput) -> Verdict:
        """Return the verdict of the program on the SQS `Message` object: a match if it matches for any S3 object."""
        for document in filter_input.documents(with_metadata=self.uses_metadata):
            found = self._verdict(document)
            if found.matches:
                return found
        unread = filter_input.s3.unread if filter_input.s3 and self.uses_metadata else None
        return Verdict(matches=False, reason=f"{found.reason}; {unread}") if unread else found

    def _verdict(self, document: Mapping[str, Any]) -> Verdict:
        try:
            decision = self.program.decision(document)
        except ProgramFailed:
            # The program's own error text is left out: it quotes the message.
            return Verdict(matches=False, reason="jq_filter: ends with an error, which is no match")
        if decision is None:
            return Verdict(matches=False, reason="jq_filter: says neither true nor false")
        return Verdict(matches=decision, reason=f"jq_filter: says {'true' if decision else 'false'}")


@dataclass(frozen=True, slots=True)
class AllOf:
    """A filter that claims messages which all of its parts claim; without parts it claims nothing."""

    parts: tuple[Filter, ...]
    without_parts: str

    def verdict(self, filter_input: FilterInput) -> Verdict:
        """Return the first refusal, or a match with the reasons of all parts."""
        verdicts = []
        for part in self.parts:
            verdicts.append(part.verdict(filter_input))
            if not verdicts[-1].matches:
                return verdicts[-1]
        reasons = "; ".join(verdict.reason for verdict in verdicts)
        return Verdict(matches=bool(verdicts), reason=reasons or self.without_parts)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A filter that claims messages which any of its parts claims."""

    parts: tuple[Filter, ...]

    def verdict(self, filter_input: FilterInput) -> Verdict:
        """Return the first match, or a refusal with the reasons of all parts."""
        refusals = []
        for part in self.parts:
            verdict = part.verdict(filter_input)
            if verdict.matches:
                return verdict
            refusals.append(verdict.reason)
        return Verdict(matches=False, reason="; ".join(refusals))


@dataclass(frozen=True, slots=True)
class MatchAll:
    """A filter that claims every message."""

    reason: str

    def verdict(self, _filter_input: FilterInput) -> Verdict:
        """Return a match."""
        return Verdict(matches=True, reason=self.reason)


def uses_metadata(filter_: Filter) -> bool:
    """Return whether a filter uses the metadata of S3 objects."""
    if isinstance(filter_, AllOf | AnyOf):
        return any(map(uses_metadata, filter_.parts))
    return isinstance(filter_, ProgramFilter) and filter_.uses_metadata


MATCH_NONE = AllOf((), without_parts="no filter is given, so it matches nothing")
