"""Parsing of JSON and YAML documents: every field has a path, and all problems are reported together."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from signalbox.errors import RejectedError

SHOWN_CHARACTERS = 80
MAXIMUM_PROBLEMS = 20  # further ones are not kept: a stranger's document may have 65,000
MAXIMUM_PROBLEM_LENGTH = 2_000  # the path of an unknown field has any length, and an error fits into a reply
Value = TypeVar("Value")
Default = TypeVar("Default")


@dataclass(slots=True)
class Problems:
    """The first problems of a document, in the order of discovery."""

    found: list[str] = field(default_factory=list)

    def add(self, path: str, text: str) -> None:
        """Add a problem with its path."""
        problem = f"{path}: {text}"[:MAXIMUM_PROBLEM_LENGTH]
        if len(self.found) < MAXIMUM_PROBLEMS and problem not in self.found:  # a field may be read twice
            self.found.append(problem)

    def refuse(self, error: type[RejectedError]) -> None:
        """Raise `error` with one line for each problem; do nothing without problems."""
        if self.found:
            raise error("\n".join(self.found))


@dataclass(frozen=True, slots=True)
class Section:
    """An object of a document; a field of the wrong type adds a problem and reads as absent."""

    fields: Mapping[str, object]
    path: str
    problems: Problems

    @classmethod
    def of(cls, value: object, path: str, problems: Problems) -> "Section":
        """Return the section of an object; any other value adds a problem and reads as an empty object."""
        if isinstance(value, Mapping):
            return cls({str(name): found for name, found in value.items()}, path, problems)
        problems.add(path, f"expected an object, not {shown(value)}")
        return cls({}, path, problems)

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def problem(self, name: str, text: str) -> None:
        """Add a problem with a field."""
        self.problems.add(self.at(name), text)

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Add a problem for every unknown field; one that is null is absent, as in Kubernetes."""
        for name, value in self.fields.items():
            if name not in known and value is not None:
                self.problem(name, f"unknown field; known here: {', '.join(known)}")

    def text(self, name: str) -> str | None:
        """Return a text, or None when the field is absent."""
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return value
        self.problem(name, f"expected a text, not {shown(value)}")
        return None

    def required_text(self, name: str) -> str:
        """Return a text; an absent or empty field adds a problem."""
        if self.fields.get(name) in (None, ""):
            self.problem(name, "is missing or empty")
            return ""
        return self.text(name) or ""

    def attempt(self, name: str, read: Callable[[], Value], *, default: Default) -> Value | Default:
        """Return the result of `read`; an input that it rejects is a problem of the field and reads as `default`."""
        try:
            return read()
        except RejectedError as error:
            self.problem(name, str(error))
            return default

    def parsed(self, name: str, parse: Callable[[str], Value], *, default: Default) -> Value | Default:
        """Return a required text as `parse` reads it; one that is absent, empty or rejected reads as `default`."""
        text = self.required_text(name)
        return self.attempt(name, lambda: parse(text), default=default) if text else default

    def choice(self, name: str, choices: Iterable[Value], *, default: Default) -> Value | Default:
        """Return the value of `choices` that a text names; one that is absent or names none reads as `default`."""
        text, known = self.text(name), {str(one): one for one in choices}
        if text is not None and text not in known:
            self.problem(name, f"expected one of {', '.join(known)}, not {shown(text)}")
        return default if text is None else known.get(text, default)

    def flag(self, name: str) -> bool:
        """Return a boolean; False when the field is absent."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, bool):
            self.problem(name, f"expected true or false, not {shown(value)}")
        return value is True

    def whole_number(self, name: str) -> int | None:
        """Return an integer of at least 0, or None when the field is absent."""
        value = self.fields.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        self.problem(name, f"expected a whole number from 0 on, not {shown(value)}")
        return None

    def texts_by_name(self, name: str) -> dict[str, str] | None:
        """Return an object whose values are texts, or None when the field is absent."""
        if self.fields.get(name) is None:
            return None
        section = self.section(name)
        return {key: text for key in section.fields if (text := section.text(key)) is not None}

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty when the field is absent."""
        return tuple(self._each_text(name))

    def _each_text(self, name: str) -> Iterator[str]:
        for number, value in enumerate(self._list(name)):
            if isinstance(value, str):
                yield value
            else:
                self.problem(f"{name}[{number}]", f"expected a text, not {shown(value)}")

    def section(self, name: str) -> "Section":
        """Return the section of a field."""
        return Section.of(self.fields.get(name), self.at(name), self.problems)

    def sections(self, name: str) -> Iterator["Section"]:
        """Yield the sections of a list of objects."""
        for number, value in enumerate(self._list(name)):
            yield Section.of(value, f"{self.at(name)}[{number}]", self.problems)

    def _list(self, name: str) -> Sequence[object]:
        value = self.fields.get(name)
        if value is None:
            return ()
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return value
        self.problem(name, f"expected a list, not {shown(value)}")
        return ()


def shown(value: object) -> str:
    """Return the representation of a value, cut to 80 characters, for error texts."""
    try:
        text = repr(value)
    except RecursionError:  # a little less nesting than the parser allows, since more functions are being called here
        return "a deeply nested value"
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
