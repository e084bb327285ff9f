"""Queue references in a target's variables: finding and replacing queue names."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.queues import InvalidQueueName, QueueName, parse_any_queue_name
from signalbox.splitting.consumers.queue_reference import Home, QueueReference
from signalbox.splitting.consumers.registry import NameSource, SourceKind
from signalbox.splitting.consumers.registry_reader import ALL_VALUES
from signalbox.splitting.model.filters import Compiler, FilterStopped, ProgramFailed


class UnresolvedQueue(RejectedError):
    """Raised when a target has no queue name where its registry expects one."""


class MissingReference(UnresolvedQueue):
    """Raised when a target lacks the variable or the mapping that its registry names."""


class NoQueueName(UnresolvedQueue):
    """Raised when a value has no queue name where its registry expects one.

    The text is the same for every reason: the author of a registry must not read the values of other variables by
    what a selector or a pattern finds in them.
    """

    def __init__(self, variable: str) -> None:
        super().__init__(f"variable {variable!r} holds no queue name where the registry expects one")


class QueueElsewhere(UnresolvedQueue):
    """Raised when a target names a queue of another account or region, which a stage cannot split."""


def unread(source: NameSource) -> type[UnresolvedQueue]:
    """Return the error for a variable that may be where Signalbox does not read; its fallback must not be used then."""
    return MissingReference if source.fallback is None else UnresolvedQueue


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
    home: Home

    def resolve(self, source: NameSource, environment: Mapping[str, str]) -> tuple[Resolution, ...]:
        """Return the variables of an environment that contain queue names. Raises `UnresolvedQueue`."""
        found = [Resolution(name, environment[name], ()) for name in self._variables(source, environment)]
        if not found and source.fallback is not None:
            found = [Resolution(source.key, source.fallback, (), is_added=True)]
        if not found:
            kind = "variable like" if source.kind is SourceKind.VARIABLES_LIKE else "variable"
            raise MissingReference(f"the target has no {kind} {source.key!r}, and there is no fallback")
        return tuple(self._with_names(one, source) for one in found)

    def in_value(self, source: NameSource, variable: str, value: str) -> Resolution:
        """Return the queue names in a value outside the environment, such as a parameter's value."""
        return self._with_names(Resolution(variable, value, ()), source)

    def replaced(self, source: NameSource, resolution: Resolution, names: Mapping[QueueName, QueueName]) -> str:
        """Return the value with the queue names replaced and everything else unchanged."""

        def rename(text: str) -> str:
            span = self._span(source, text)
            if span is None:
                return text
            reference = QueueReference(text[slice(*span)])
            other = reference.to(names.get(reference.queue_name, reference.queue_name))
            return text[: span[0]] + other + text[span[1] :]

        if source.selector is None:
            return rename(resolution.value)
        texts = set(self._selected(source.selector, resolution))
        document = json.loads(resolution.value)
        if source.selector == ALL_VALUES:
            changed: object = {key: _with_text(value, texts, rename) for key, value in document.items()}
        else:
            changed = _with_texts(document, texts, rename)
        return json.dumps(changed)

    def check_home(self, reference: QueueReference, subject: str) -> None:
        """Raise `QueueElsewhere` if a reference names a queue of another account or region."""
        if difference := reference.difference(self.home):
            raise QueueElsewhere(
                f"{subject} names {difference}; this stage splits queues of account {self.home.account} in region "
                f"{self.home.region}"
            )

    def _variables(self, source: NameSource, environment: Mapping[str, str]) -> Iterator[str]:
        if source.kind is SourceKind.VARIABLES_LIKE:
            pattern = self.compiler.pattern(source.key, case_sensitive=True)
            yield from (name for name in sorted(environment) if pattern.matches(name))
        elif source.key in environment:
            yield source.key

    def _with_names(self, resolution: Resolution, source: NameSource) -> Resolution:
        try:
            references = list(self._references(source, resolution))
        except (ProgramFailed, FilterStopped) as error:
            raise NoQueueName(resolution.variable) from error
        if resolution.is_added or source.is_whole_value:
            for reference in references:
                self.check_home(reference, f"variable {resolution.variable!r}")
        found = [reference.queue_name for reference in references if not reference.difference(self.home)]
        if not found or len(found) < len(references) or not all(map(_is_queue_name, found)):
            raise NoQueueName(resolution.variable)
        names = tuple(dict.fromkeys(found))
        return Resolution(resolution.variable, resolution.value, names, is_added=resolution.is_added)

    def _references(self, source: NameSource, resolution: Resolution) -> Iterator[QueueReference]:
        texts = [resolution.value] if source.selector is None else self._selected(source.selector, resolution)
        for text in texts:
            if (span := self._span(source, text)) is not None:
                yield QueueReference.inside(text, *span)

    def _selected(self, selector: str, resolution: Resolution) -> list[str]:
        try:
            document = json.loads(resolution.value)
        except (ValueError, RecursionError) as error:  # the value may be nested deeper than Python can parse
            raise NoQueueName(resolution.variable) from error
        if selector != ALL_VALUES:
            texts = self.compiler.program(selector).texts(document)
            if not set(texts) <= set(_texts(document)):  # made texts cannot be replaced
                raise NoQueueName(resolution.variable)
            return texts
        values = document.values() if isinstance(document, dict) else ()
        return [value for value in values if isinstance(value, str)]

    def _span(self, source: NameSource, text: str) -> tuple[int, int] | None:
        """Return the part of a text that `pattern` captures, or None; without a pattern it is the whole text."""
        if source.pattern is None:
            return 0, len(text)
        return self.compiler.capture(source.pattern).span(text)


def _is_queue_name(text: str) -> bool:
    try:
        parse_any_queue_name(text)
    except InvalidQueueName:
        return False
    return True


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value, without keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _with_texts(value: object, texts: set[str], change: Callable[[str], str]) -> object:
    """Return a JSON value in which `change` is applied to every occurrence of the given texts."""
    if isinstance(value, dict):
        return {key: _with_texts(inner, texts, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_texts(inner, texts, change) for inner in value]
    return _with_text(value, texts, change)


def _with_text(value: object, texts: set[str], change: Callable[[str], str]) -> object:
    return change(value) if isinstance(value, str) and value in texts else value
