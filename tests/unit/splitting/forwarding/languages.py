"""Filter languages for tests: Python's regular expressions, and programs that are named Python functions."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from signalbox.splitting.model.filters import FilterStopped, FilterUse, InvalidExpression, ProgramFailed

SLOW = "slow"
KILLS = "kills"


@dataclass(frozen=True)
class PlainPattern:
    compiled: re.Pattern[str]
    languages: "PlainLanguages"

    def matches(self, text: str) -> bool:
        if self.compiled.pattern.startswith(SLOW):
            self.languages.use_all()
            raise FilterStopped("pattern 'slow' took longer than 1 s")
        if self.compiled.pattern == KILLS:
            raise SystemExit("the function is killed")
        return self.compiled.search(text) is not None

    def span(self, text: str) -> tuple[int, int] | None:
        match = self.compiled.search(text)
        group = "value" if "value" in self.compiled.groupindex else min(self.compiled.groups, 1)
        return match.span(group) if match and match.span(group) != (-1, -1) else None


@dataclass(frozen=True)
class PlainProgram:
    function: Callable[[object], Sequence[object]]

    def decision(self, document: object) -> bool | None:
        return next((one for one in self.function(document) if isinstance(one, bool)), None)

    def texts(self, document: object) -> list[str]:
        return [one for one in self.function(document) if isinstance(one, str)]


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
    "keys[]": list,
    ".queue": lambda document: [document["queue"]],
    ".queues[]": lambda document: list(document["queues"]),
}


class PlainLanguages:
    """A `Compiler` without the sandbox; an evaluation of a pattern that is `SLOW` uses all of its time."""

    use = FilterUse()
    slow_seconds = 0.0

    def begin(self, use: FilterUse) -> FilterUse:
        before, self.use = self.use, use
        return before

    def pattern(self, text: str, *, case_sensitive: bool) -> PlainPattern:
        try:
            return PlainPattern(re.compile(text, 0 if case_sensitive else re.IGNORECASE), self)
        except re.error as error:
            raise InvalidExpression(f"{text!r}: {error}") from error

    def use_all(self) -> None:
        seconds = min(1.0, self.use.limit_seconds - self.use.seconds)
        self.use.seconds += seconds
        self.use.elapsed_seconds += seconds
        self.slow_seconds += seconds

    def capture(self, text: str) -> PlainPattern:
        return self.pattern(text, case_sensitive=True)

    def program(self, text: str) -> PlainProgram:
        if text not in PROGRAMS:
            raise InvalidExpression(f"{text!r}: unknown")
        return PlainProgram(PROGRAMS[text])
