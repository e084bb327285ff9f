"""Filter languages for tests: Python's regular expressions, and programs that are named Python functions."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from signalbox.splitting.forwarding.filters import FilterTooSlow, InvalidExpression, ProgramFailed

SLOW = "slow"


@dataclass(frozen=True)
class PlainPattern:
    compiled: re.Pattern[str]

    def matches(self, text: str) -> bool:
        if self.compiled.pattern == SLOW:
            raise FilterTooSlow("pattern 'slow' took longer than 1 s")
        return self.compiled.search(text) is not None

    def span(self, text: str) -> tuple[int, int] | None:
        match = self.compiled.search(text)
        group = "value" if "value" in self.compiled.groupindex else min(self.compiled.groups, 1)
        return match.span(group) if match and match.span(group) != (-1, -1) else None


@dataclass(frozen=True)
class PlainProgram:
    function: Callable[[object], Sequence[object]]

    def outputs(self, document: object) -> Sequence[object]:
        return self.function(document)


def _fail(_document: object) -> Sequence[object]:
    raise ProgramFailed("cannot parse")


PROGRAMS: dict[str, Callable[[object], Sequence[object]]] = {
    "true": lambda _: [True],
    "false": lambda _: [False],
    "1": lambda _: [1],
    '"true"': lambda _: ["true"],
    "empty": lambda _: [],
    "null, true": lambda _: [None, True],
    "error": _fail,
    '.Body == "mine"': lambda document: [document["Body"] == "mine"],
    '.S3Metadata.client == "a"': lambda document: [document.get("S3Metadata", {}).get("client") == "a"],
    ".queue": lambda document: [document["queue"]],
    ".queues[]": lambda document: list(document["queues"]),
}


class PlainLanguages:
    """A `Compiler` without RE2 and jq."""

    def pattern(self, text: str, *, case_sensitive: bool) -> PlainPattern:
        try:
            return PlainPattern(re.compile(text, 0 if case_sensitive else re.IGNORECASE))
        except re.error as error:
            raise InvalidExpression(f"{text!r}: {error}") from error

    def program(self, text: str) -> PlainProgram:
        if text not in PROGRAMS:
            raise InvalidExpression(f"{text!r}: unknown")
        return PlainProgram(PROGRAMS[text])
