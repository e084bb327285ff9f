"""Regular expressions of users in mirrord's dialect: small ones run here at a bounded cost, others in the sandbox."""

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.filters.engines import Engines, Reservation
from signalbox.splitting.model.filters import InvalidExpression

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MAXIMUM_PATTERN_CHARACTERS = 10_000
MAXIMUM_EASY_CHARACTERS = 256
# Rust's definitions of its classes, which JSON Schema's own dialect would replace by those of ECMAScript.
CLASSES = {
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\s": r"\p{White_Space}",
    r"\S": r"\P{White_Space}",
    r"\w": r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]",
    r"\W": r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]",
}
ESCAPE = re.compile(r"\\.", re.DOTALL)
# What Rust's parser refuses and the engine, or the definitions of classes, would give a meaning.
PART = re.compile(
    r"\\(?:(?P<number>[1-9])|.)|\(\?(?:(?P<test>\([0-9])|(?P<name>P?<(?![=!])))|(?:\A|[(|])\{"
    r"|\[\^?\]?(?P<within>(?:\[[^\\\[\]]*\]|\\.|[^\\\]])*+)|\{(?P<least>[0-9]{1,9}),(?P<most>[0-9]{1,9})\}",
    re.DOTALL,
)
WITHIN = re.compile(r"\\(?:[wW](?P<range>-[^-])?|.)", re.DOTALL)
# The syntax whose automaton grows with the pattern only, without counts, and in which nothing backtracks. Each part
# with its states: the states of a pattern, times the length of the text, are the steps that a search needs at most.
EASY = re.compile(
    r"(?P<group>\((?:\?:)?)|(?P<mark>[)|^$])|(?P<all>\.\*\??(?![*+?]))"
    r"|(?P<class>(?:\[\^?[A-Za-z0-9 _.,:;/@+*=][A-Za-z0-9 _.,:;/@+*=-]*\]|\\[dDsS]|\.)(?:[*+?]\??(?![*+?]))?)"
    r"|(?P<word>\\[wW](?:[*+?]\??(?![*+?]))?)"
    r"|(?P<plain>[^\\^$|?*+()\[\]{}.]|\\[][\\^$|?*+(){}./:@-])"
    r"|(?P<repeated>(?<![*+?(|^])[*+?]\??(?![*+?]))",
    re.DOTALL,
)
STATES = {"group": 1, "mark": 1, "all": 12, "class": 63, "word": 903, "plain": 12, "repeated": 3}
MAXIMUM_STATES = 5_000
SEARCH_STEPS = 20  # the steps of a search in an empty text, for each state
# Parts after which the engine may be in several states at once. Each may double the states that it remembers, up to
# 2 MB for a pattern; with four of them none of 400 random patterns took more memory than without (40 KB).
AMBIGUOUS = frozenset({"group", "class", "word", "repeated"})
MAXIMUM_AMBIGUOUS = 4
PATTERN_BYTES, STATE_BYTES = 40_000, 300


def compile_pattern(text: str, *, case_sensitive: bool, engines: Engines) -> "EasyPattern | SandboxedPattern":
    """Return a pattern that can be searched in texts. Raises `InvalidExpression`."""
    if len(text) > MAXIMUM_PATTERN_CHARACTERS:
        raise InvalidExpression(
            f"{len(text)} characters are too many; at most {MAXIMUM_PATTERN_CHARACTERS} are allowed"
        )
    _check(text)
    spellings = _spellings(_encodable(text), case_sensitive=case_sensitive)
    sandboxed = SandboxedPattern(text, spellings, engines)
    states = _states(text)
    memory = engines.reserved(PATTERN_BYTES + STATE_BYTES * states) if states else None
    compiled = _compiled(spellings[0]) if memory else None
    if memory is None or compiled is None:
        engines.compile("compile pattern", spellings, name=f"{text!r}")
        return sandboxed
    return EasyPattern(compiled, states, sandboxed, memory)


def _check(text: str) -> None:
    """Raise `InvalidExpression` for what mirrord refuses and the engine here does not."""
    parts = [*PART.finditer(text)]
    if any(part["name"] for part in parts) and any(part["number"] or part["test"] for part in parts):
        raise InvalidExpression(f"{text!r} refers to groups by number, and one has a name: refer to it by its name")
    for part in parts:
        if part["most"] and int(part["least"]) > int(part["most"]):
            raise InvalidExpression(f"{text!r}: the bounds of {part[0]} are reversed")
        if any(found["range"] for found in WITHIN.finditer(part["within"] or "")):
            raise InvalidExpression(f"{text!r}: a range in {part[0]}] begins with a class: write its `-` last")


def _spellings(text: str, *, case_sensitive: bool) -> tuple[str, ...]:
    """Return the spellings of a pattern for the engine; the first one that it accepts is used.

    The engine reads the dialect of JSON Schema, and gives it to fancy-regex unchanged if it begins with look-around.
    That makes every pattern backtrack, so the second spelling is for what the first parser refuses.
    """
    flags = "" if case_sensitive else "(?i)"
    last = f"(?!)|{flags}{text}"
    if r"\c" in text:  # known to JSON Schema and not to Rust
        return (last,)
    return flags + ESCAPE.sub(lambda found: CLASSES.get(found[0], found[0]), text), last


def _states(text: str) -> int:
    """Return the states of a pattern; 0 if it is not an easy one."""
    states, position, ambiguous = 1, 0, 0
    while position < len(text) <= MAXIMUM_EASY_CHARACTERS:
        part = EASY.match(text, position)
        if part is None or part.lastgroup is None:
            break
        states += STATES[part.lastgroup]
        ambiguous += part.lastgroup in AMBIGUOUS
        position = part.end()
    is_easy = position == len(text) and states <= MAXIMUM_STATES and ambiguous <= MAXIMUM_AMBIGUOUS
    return states if is_easy else 0


def _compiled(text: str) -> "Draft202012Validator | None":
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - a function without patterns saves its import

    try:
        return Draft202012Validator({"pattern": text})
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class SandboxedPattern:
    """A pattern that is searched in the sandbox."""

    text: str
    spellings: tuple[str, ...]
    engines: Engines

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text. Raises `FilterStopped`."""
        answer = self.engines.answer(
            "search", self.spellings, json.dumps(_encodable(text)), name=f"pattern {self.text!r}"
        )
        return answer["matches"] is True


@dataclass(frozen=True, slots=True)
class EasyPattern:
    """A pattern that is searched here, in linear time, as long as its owner has steps left; then in the sandbox."""

    compiled: "Draft202012Validator"
    states: int
    sandboxed: SandboxedPattern
    memory: Reservation = field(repr=False, compare=False)

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text. Raises `FilterStopped`."""
        use = self.sandboxed.engines.use
        steps = self.states * (len(text) + SEARCH_STEPS)
        if steps > use.steps:
            return self.sandboxed.matches(text)
        use.steps -= steps
        return self.compiled.is_valid(text if text.isascii() else _encodable(text))


def _encodable(text: str) -> str:
    # JSON may contain half of a surrogate pair, which UTF-8 cannot encode.
    return text.encode(errors="replace").decode()
