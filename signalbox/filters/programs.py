"""jq programs of users, which run in the sandbox."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from signalbox.filters.engines import Engines
from signalbox.filters.jq_dialect import decision_of, texts_of
from signalbox.splitting.model.filters import InvalidExpression, ProgramFailed

MAXIMUM_PROGRAM_CHARACTERS = 10_000


def compile_program(text: str, engines: Engines) -> "JqProgram":
    """Return a compiled program. Raises `InvalidExpression` with the reason."""
    if len(text) > MAXIMUM_PROGRAM_CHARACTERS:
        most = MAXIMUM_PROGRAM_CHARACTERS
        raise InvalidExpression(f"{len(text)} characters are too many; at most {most} are allowed")
    try:
        program = JqProgram(text, decision_of(text), engines)
    except InvalidExpression as error:
        raise InvalidExpression(f"{text!r}: {error}") from error
    engines.compile("compile program", program.deciding, name=f"{text!r}")
    return program


@dataclass(frozen=True, slots=True)
class JqProgram:
    """A compiled jq program; `deciding` is the program for its decision in the engine's dialect."""

    text: str
    deciding: str = field(repr=False)
    engines: Engines = field(repr=False, compare=False)

    def decision(self, document: object) -> bool | None:
        """Return the first output that is true or false. Raises `ProgramFailed` and `FilterStopped`."""
        decision = self._answer("decide", self.deciding, document)["decision"]
        return decision if isinstance(decision, bool) else None

    def texts(self, document: object) -> list[str]:
        """Return the outputs that are texts. Raises `ProgramFailed` and `FilterStopped`."""
        texts = self._answer("select", texts_of(self.text), document)["texts"]
        return texts if isinstance(texts, list) else []

    def _answer(self, task: str, source: str, document: object) -> Mapping[str, object]:
        # mirrord's engine sorts the keys of its input, and an output may depend on their order.
        name, text = f"jq program {self.text!r}", json.dumps(document, sort_keys=True)
        answer = self.engines.answer(task, source, text, name=name)
        if "failed" in answer:
            raise ProgramFailed(str(answer["failed"]))
        return answer
