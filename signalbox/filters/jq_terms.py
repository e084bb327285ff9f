"""The terms of jq programs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A term: `kind` says what its `text`, its inner `terms` and its `parts` are."""

    kind: str
    text: str = ""
    terms: tuple["Term", ...] = ()
    parts: tuple["PathStep | ObjectEntry", ...] = ()
    pattern: "VariablePattern | None" = None


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of a path: an index, all values (no terms), or a slice with one or two bounds."""

    terms: tuple[Term | None, ...]
    is_optional: bool


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """An entry of an object; without a value, it is the value of the key."""

    key: Term
    value: Term | None


@dataclass(frozen=True, slots=True)
class VariablePattern:
    """A variable, or the patterns of the values at keys."""

    variable: str = ""
    inner: tuple[tuple[Term, "VariablePattern"], ...] = ()


def text_of(text: str) -> Term:
    """Return the term of a text without escapes."""
    return Term("text", terms=(Term("characters", text),))
