"""jq programs of users, which run in the sandbox."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from signalbox.filters.engines import Engines
from signalbox.splitting.forwarding.filters import InvalidExpression, ProgramFailed

MAXIMUM_PROGRAM_CHARACTERS = 10_000


def compile_program(text: str, engines: Engines) -> "JqProgram":
    """Return a compiled program. Raises `InvalidExpression` with jq's error message."""
    if len(text) > MAXIMUM_PROGRAM_CHARACTERS:
        most = MAXIMUM_PROGRAM_CHARACTERS
        raise InvalidExpression(f"{len(text)} characters are too many; at most {most} are allowed")
    engines.compile("compile program", text, name=f"{text!r}")
    return JqProgram(text, engines)


@dataclass(frozen=True, slots=True)
class JqProgram:
    """A compiled jq program."""

    text: str
    engines: Engines = field(repr=False, compare=False)

    def decision(self, document: object) -> bool | None:
        """Return the first output that is true or false. Raises `ProgramFailed` and `FilterStopped`."""
        decision = self._answer("decide", document).get("decision")
        return decision if isinstance(decision, bool) else None

    def texts(self, document: object) -> list[str]:
        """Return the outputs that are texts. Raises `ProgramFailed` and `FilterStopped`."""
        texts = self._answer("select", document)["texts"]
        return texts if isinstance(texts, list) else []

    def _answer(self, task: str, document: object) -> Mapping[str, object]:
        name = f"jq program {self.text!r}"
        answer = self.engines.answer(task, self.text, json.dumps(document), name=name)
        if "failed" in answer:
            raise ProgramFailed(str(answer["failed"]))
        return answer
