"""Bindings as `exchange match` reads them from a JSON file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

from signalbox.errors import RejectedError
from signalbox.exchange.model.patterns import InvalidPattern, Pattern
from signalbox.exchange.model.topics import short_string_problem, shown

DeclaredName = NewType("DeclaredName", str)  # a queue's AMQP name; its name in SQS may differ

FIELDS = ("queue", "pattern")


class InvalidBindings(RejectedError):
    """Raised when a document is not a list of bindings, or a binding in it is invalid."""


@dataclass(frozen=True, slots=True)
class FileBinding:
    """A binding of a file: a queue and its pattern."""

    queue: DeclaredName
    pattern: Pattern


def parse_bindings(document: object) -> tuple[FileBinding, ...]:
    """Return the bindings in `[{"queue": …, "pattern": …}]`. Raises `InvalidBindings` with all problems."""
    if not isinstance(document, list):
        raise InvalidBindings(f"bindings: expected a list of objects with queue and pattern, not {shown(document)}")
    problems: list[str] = []
    bindings = [_binding(value, f"bindings[{number}]", problems) for number, value in enumerate(document)]
    if problems:
        raise InvalidBindings("\n".join(problems))
    return tuple(binding for binding in bindings if binding)


def _binding(value: object, path: str, problems: list[str]) -> FileBinding | None:
    """Return a binding, or None after adding its problems to `problems`."""
    if not isinstance(value, Mapping):
        problems.append(f"{path}: expected an object with queue and pattern, not {shown(value)}")
        return None
    unknown = [shown(name) for name in value if name not in FIELDS]
    problems += [f"{path}: unknown field {name}; known here: {', '.join(FIELDS)}" for name in unknown]
    queue = _queue(value.get("queue"), f"{path}.queue", problems)
    pattern = _pattern(value.get("pattern"), f"{path}.pattern", problems)
    return FileBinding(queue, pattern) if queue and pattern else None


def _queue(value: object, path: str, problems: list[str]) -> DeclaredName | None:
    if not isinstance(value, str) or not value:
        problems.append(f"{path}: expected a queue name, not {shown(value)}")
        return None
    problem = short_string_problem(value)
    if problem:
        problems.append(f"{path}: {shown(value)} {problem}")
    return DeclaredName(value)


def _pattern(value: object, path: str, problems: list[str]) -> Pattern | None:
    if not isinstance(value, str):
        problems.append(f"{path}: expected a text, not {shown(value)}")
        return None
    try:
        return Pattern.parse(value)
    except InvalidPattern as error:
        problems.append(f"{path}: {error}")
        return None
