"""Queue references in a target's variables: finding and replacing queue names."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import NameSource, SourceKind
from signalbox.splitting.consumers.registry_reader import ALL_VALUES
from signalbox.splitting.forwarding.filters import Compiler

ARN_PARTS = 6


class UnresolvedQueue(RejectedError):
    """Raised when a target has no queue name where its registry expects one."""


@dataclass(frozen=True, slots=True)
class QueueReference:
    """A queue reference: a name, URL or ARN."""

    text: str

    @property
    def queue_name(self) -> QueueName:
        """Return the queue's name."""
        return QueueName(self.text[self._start :])

    def to(self, name: QueueName) -> str:
        """Return a reference of the same form to another queue of the same account and region."""
        return self.text[: self._start] + name

    @property
    def _start(self) -> int:
        is_arn = self.text.startswith("arn:") and self.text.count(":") == ARN_PARTS - 1
        return self.text.rindex(":" if is_arn else "/") + 1 if is_arn or "://" in self.text else 0


@dataclass(frozen=True, slots=True)
class Resolution:
    """A variable with queue names; `is_added` is true if the target lacks the variable and receives it."""

    variable: str
    value: str
    queue_names: tuple[QueueName, ...]
    is_added: bool = False


@dataclass(frozen=True, slots=True)
class Resolver:
    """Finds and replaces queue names by the name sources of a registry."""

    compiler: Compiler

    def resolve(self, source: NameSource, environment: Mapping[str, str]) -> tuple[Resolution, ...]:
        """Return the variables of an environment that contain queue names. Raises `UnresolvedQueue`."""
        found = [Resolution(name, environment[name], ()) for name in self._variables(source, environment)]
        if not found and source.fallback is not None:
            found = [Resolution(source.key, source.fallback, (), is_added=True)]
        if not found:
            kind = "variable like" if source.kind is SourceKind.VARIABLES_LIKE else "variable"
            raise UnresolvedQueue(f"the target has no {kind} {source.key!r}, and there is no fallback")
        return tuple(self._with_names(one, source) for one in found)

    def in_value(self, source: NameSource, variable: str, value: str) -> Resolution:
        """Return the queue names in a value outside the environment, such as a parameter's value."""
        return self._with_names(Resolution(variable, value, ()), source)

    def replaced(self, source: NameSource, resolution: Resolution, names: Mapping[QueueName, QueueName]) -> str:
        """Return the value with the queue names replaced and everything else unchanged."""

        def other(text: str) -> str:
            reference = QueueReference(text)
            return reference.to(names.get(reference.queue_name, reference.queue_name))

        rename = self._inside(source, other)
        if source.selector is None:
            return rename(resolution.value)
        texts = set(self._selected(source.selector, resolution))
        document = json.loads(resolution.value)
        if source.selector == ALL_VALUES:
            changed: object = {key: _with_text(value, texts, rename) for key, value in document.items()}
        else:
            changed = _with_texts(document, texts, rename)
        return json.dumps(changed)

    def _variables(self, source: NameSource, environment: Mapping[str, str]) -> Iterator[str]:
        if source.kind is SourceKind.VARIABLES_LIKE:
            pattern = self.compiler.pattern(source.key, case_sensitive=True)
            yield from (name for name in sorted(environment) if pattern.matches(name))
        elif source.key in environment:
            yield source.key

    def _with_names(self, resolution: Resolution, source: NameSource) -> Resolution:
        texts = [resolution.value]
        if source.selector is not None:
            texts = self._selected(source.selector, resolution)
        found: list[QueueName] = []

        def note(text: str) -> str:
            found.append(QueueReference(text).queue_name)
            return text

        visit = self._inside(source, note)
        for text in texts:
            visit(text)
        if not found or not all(found):
            raise UnresolvedQueue(
                f"variable {resolution.variable!r} holds no queue name where the registry expects one"
            )
        names = tuple(dict.fromkeys(found))
        return Resolution(resolution.variable, resolution.value, names, is_added=resolution.is_added)

    def _selected(self, selector: str, resolution: Resolution) -> list[str]:
        try:
            document = json.loads(resolution.value)
        except (ValueError, RecursionError) as error:  # the value may be nested deeper than Python can parse
            raise UnresolvedQueue(f"variable {resolution.variable!r} does not hold JSON: {error}") from error
        if selector != ALL_VALUES:
            return self.compiler.program(selector).texts(document)
        values = document.values() if isinstance(document, dict) else ()
        return [value for value in values if isinstance(value, str)]

    def _inside(self, source: NameSource, change: Callable[[str], str]) -> Callable[[str], str]:
        """Return a function that changes only the part of a text that `pattern` captures."""
        if source.pattern is None:
            return change
        pattern = self.compiler.capture(source.pattern)

        def changed(text: str) -> str:
            span = pattern.span(text)
            return text if span is None else text[: span[0]] + change(text[span[0] : span[1]]) + text[span[1] :]

        return changed


def _with_texts(value: object, texts: set[str], change: Callable[[str], str]) -> object:
    """Return a JSON value in which `change` is applied to every occurrence of the given texts."""
    if isinstance(value, dict):
        return {key: _with_texts(inner, texts, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_texts(inner, texts, change) for inner in value]
    return _with_text(value, texts, change)


def _with_text(value: object, texts: set[str], change: Callable[[str], str]) -> object:
    return change(value) if isinstance(value, str) and value in texts else value
