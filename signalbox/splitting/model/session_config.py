"""mirrord's `feature.split_queues`: the messages that a session claims of each queue."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.splitting.model.claims import Claim, Mode, SessionId
from signalbox.splitting.model.copy_target import is_scaled_down
from signalbox.splitting.model.filters import (
    MATCH_NONE,
    AllOf,
    AnyOf,
    AttributePattern,
    CompiledPattern,
    Compiler,
    Filter,
    InvalidExpression,
    MatchAll,
    MetadataPattern,
    ProgramFilter,
    uses_metadata,
)

QueueId = NewType("QueueId", str)

EVERY_QUEUE = QueueId("*")
SQS = "SQS"
OTHER_BROKERS = (
    "Kafka",
    "RMQ",
    "GCPPubSub",
    "AzureServiceBus",
    "RedisPubSub",
    "Temporal",
    "BullMQ",
    "NATS",
    "NATSPubSub",
)
UNRENDERED = "has a template that is not rendered: `signalbox split` renders a file, and {{ key }} only if it has a key"
FILTERS = ("message_filter", "jq_filter", "filter")
ENTRY_FIELDS = ("queue_type", "queue_mode", *FILTERS)
LIST_ENTRY_FIELDS = ("queue_id", *ENTRY_FIELDS)
FILTER_FORMS = ("metadata", "any_of", "all_of")
EVERY_MESSAGE = MatchAll("queue_mode exclusive: every message")
WHOLE_TARGET = {EVERY_QUEUE: {"queue_type": SQS, "queue_mode": Mode.EXCLUSIVE}}


class InvalidSessionConfig(RejectedError):
    """Raised when the queues of a session are not described in mirrord's format."""


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """The claim of a session on the queues with one id."""

    queue_id: QueueId
    mode: Mode
    filter: Filter


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """The claims of a session; `other_brokers` names entries for queues outside SQS, which are not split."""

    entries: tuple[QueueEntry, ...]
    other_brokers: tuple[str, ...] = ()

    @property
    def named_queues(self) -> tuple[QueueId, ...]:
        """Return the queue ids that the session names."""
        return tuple(entry.queue_id for entry in self.entries if entry.queue_id != EVERY_QUEUE)

    def steals(self, queue_id: QueueId) -> bool:
        """Return whether the session can own messages of a queue."""
        return self.claim(SessionId(""), queue_id).mode is not Mode.MIRROR and self.claims(queue_id)

    def mirrors(self, queue_id: QueueId) -> bool:
        """Return whether the session can get copies of messages of a queue."""
        return self.claim(SessionId(""), queue_id).mode is Mode.MIRROR

    def claims(self, queue_id: QueueId) -> bool:
        """Return whether the session can get messages of a queue, or copies of them."""
        found = self.claim(SessionId(""), queue_id).filter
        return not isinstance(found, AllOf) or bool(found.parts)

    def is_exclusive(self, queue_id: QueueId) -> bool:
        """Return whether the session takes every message of a queue."""
        return self.claim(SessionId(""), queue_id).mode is Mode.EXCLUSIVE

    def uses_metadata(self, queue_id: QueueId) -> bool:
        """Return whether the session's filter uses the metadata of S3 objects."""
        return uses_metadata(self.claim(SessionId(""), queue_id).filter)

    def claim(self, session: SessionId, queue_id: QueueId) -> Claim:
        """Return the session's claim on a queue: the entry for its id, else for `*`, else one without matches."""
        by_id = {entry.queue_id: entry for entry in self.entries}
        entry = by_id.get(queue_id) or by_id.get(EVERY_QUEUE)
        if entry is None:
            reason = f"queue {queue_id!r} is not listed, so it matches nothing"
            return Claim(session, Mode.STEAL, AllOf((), without_parts=reason))
        return Claim(session, entry.mode, entry.filter)


def parse_mirrord_file(document: object, compiler: Compiler) -> SessionConfig:
    """Return the session config of a mirrord.json. Raises `InvalidSessionConfig` with all problems.

    A config without a queue on SQS is refused too: its session would claim nothing.
    """
    problems = Problems()
    feature = Section.of(document, "", problems).section("feature") if isinstance(document, Mapping) else None
    queues = _queues_of(feature) if feature else None
    if not queues:
        problems.add("feature.split_queues", "is missing or empty, so there is nothing to split")
        problems.refuse(InvalidSessionConfig)
    config = read_split_queues(queues, compiler, path="feature.split_queues", problems=problems)
    problems.refuse(InvalidSessionConfig)
    if not config.entries:
        others = ", ".join(config.other_brokers)
        raise InvalidSessionConfig(
            f"feature.split_queues: no queue is on {SQS}, so there is nothing to split: {others}"
        )
    return config


def split_queues_of(document: object) -> object:
    """Return the `split_queues` of a mirrord.json, with the exclusive mode that `copy_target.scale_down` implies."""
    feature = document.get("feature") if isinstance(document, Mapping) else None
    return _queues_of(Section.of(feature, "feature", Problems())) if isinstance(feature, Mapping) else None


def _queues_of(feature: Section) -> object:
    queues = feature.fields.get("split_queues")
    if not is_scaled_down(feature):
        return queues
    if isinstance(queues, Mapping):
        return {name: _exclusive(entry) for name, entry in queues.items()} or WHOLE_TARGET
    if isinstance(queues, Sequence) and not isinstance(queues, str):
        return [_exclusive(entry) for entry in queues] or WHOLE_TARGET
    return WHOLE_TARGET if queues is None else queues


def _exclusive(entry: object) -> object:
    if isinstance(entry, Mapping) and entry.get("queue_mode") in (None, Mode.STEAL):
        return {**entry, "queue_mode": Mode.EXCLUSIVE.value} if entry.get("queue_type") == SQS else entry
    return entry


def read_split_queues(
    value: object, compiler: Compiler, *, path: str, problems: Problems, default_type: str | None = None
) -> SessionConfig:
    """Return the config in a `split_queues` value, which is a map by queue id or a list; add errors to `problems`."""
    if _has_template(json.dumps(value, default=str)):
        problems.add(path, UNRENDERED)
    reader = _Reader(compiler, default_type)
    entries = []
    others = []
    for queue_id, section in _sections(value, path, problems):
        queue_type = reader.queue_type(section)
        if queue_type == SQS:
            entries.append(reader.entry(QueueId(queue_id), section))
        elif queue_type in OTHER_BROKERS:
            others.append(f"{queue_id} ({queue_type})")
    return SessionConfig(tuple(_merged(entries, path, problems)), tuple(others))


def _has_template(text: str) -> bool:
    """Return whether a text has a tag of Tera, with which mirrord renders its configuration."""
    return any(end in text.partition(start)[2] for start, end in (("{{", "}}"), ("{%", "%}")))


def _sections(value: object, path: str, problems: Problems) -> Iterator[tuple[str, Section]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        for number, item in enumerate(value):
            entry = Section.of(item, f"{path}[{number}]", problems)
            yield entry.required_text("queue_id"), entry
        return
    section = Section.of(value, path, problems)
    for queue_id in section.fields:
        entry = section.section(queue_id)
        if "queue_id" in entry.fields:
            entry.problem("queue_id", "the key is already the queue id; use a list to give it as a field")
        yield queue_id, entry


def _merged(entries: list[QueueEntry], path: str, problems: Problems) -> Iterator[QueueEntry]:
    """Yield one entry for each queue id; an id listed twice claims the messages of either entry."""
    by_id: dict[QueueId, list[QueueEntry]] = {}
    for entry in entries:
        by_id.setdefault(entry.queue_id, []).append(entry)
    for queue_id, same in by_id.items():
        modes = {entry.mode for entry in same}
        if len(modes) > 1:
            # A session has one temporary queue for each original: its messages are either all owned or all copies.
            problems.add(path, f"queue {queue_id!r} is listed with queue_mode {' and '.join(sorted(modes))}")
        parts = tuple(entry.filter for entry in same)
        yield QueueEntry(queue_id, same[0].mode, parts[0] if len(parts) == 1 else AnyOf(parts))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses entries and compiles their filters."""

    compiler: Compiler
    default_type: str | None

    def queue_type(self, section: Section) -> str | None:
        found = section.text("queue_type") if "queue_type" in section.fields else self.default_type
        if found is None and "queue_type" not in section.fields:
            section.problem("queue_type", f"is missing; expected {SQS}")
        elif found is not None and found not in (SQS, *OTHER_BROKERS):
            section.problem(
                "queue_type", f"unknown queue type {shown(found)}; known: {', '.join((SQS, *OTHER_BROKERS))}"
            )
        return found

    def entry(self, queue_id: QueueId, section: Section) -> QueueEntry:
        section.refuse_unknown(LIST_ENTRY_FIELDS if "queue_id" in section.fields else ENTRY_FIELDS)
        if section.fields.get("message_filter") is not None and section.fields.get("filter") is not None:
            section.problem("filter", "give either message_filter or filter, not both")
        parts = (*self._attributes(section), *self._composed(section), *self._program(section))
        mode = _mode(section)
        if mode is Mode.EXCLUSIVE:
            _refuse_filters(section)
            return QueueEntry(queue_id, mode, EVERY_MESSAGE)
        found = parts[0] if len(parts) == 1 else AllOf(parts, MATCH_NONE.without_parts)
        return QueueEntry(queue_id, mode, found)

    def _attributes(self, section: Section) -> Iterator[Filter]:
        path = section.at("message_filter")
        for name, text in (section.texts_by_name("message_filter") or {}).items():
            pattern = self._pattern(text, f"{path}.{name}", section.problems, case_sensitive=False)
            if pattern:
                yield AttributePattern.of(name, text, pattern)

    def _composed(self, section: Section) -> Iterator[Filter]:
        if section.fields.get("filter") is None:
            return
        node = section.section("filter")
        if len(node.fields) != 1 or not set(node.fields) <= set(FILTER_FORMS):
            section.problem("filter", f"expected exactly one of {', '.join(FILTER_FORMS)}")
        elif "metadata" in node.fields:
            yield from self._metadata(node, "filter")
        else:
            yield from self._list(node)

    def _list(self, node: Section) -> Iterator[Filter]:
        (form,) = node.fields
        parts: list[Filter] = []
        inner = list(node.sections(form))
        if not inner:
            node.problem(form, "expected at least one filter")
        for number, leaf in enumerate(inner):
            leaf.refuse_unknown(("metadata",))
            parts += self._metadata(leaf, f"filter.{form}[{number}]")
        yield AnyOf(tuple(parts)) if form == "any_of" else AllOf(tuple(parts), MATCH_NONE.without_parts)

    def _metadata(self, node: Section, path: str) -> Iterator[Filter]:
        text = node.required_text("metadata")
        pattern = self._pattern(text, node.at("metadata"), node.problems, case_sensitive=True) if text else None
        if pattern:
            yield MetadataPattern.of(f"{path}.metadata", text, pattern)

    def _program(self, section: Section) -> Iterator[Filter]:
        text = section.text("jq_filter")
        if text is None:
            return
        try:
            yield ProgramFilter.of(text, self.compiler.program(text))
        except InvalidExpression as error:
            section.problem("jq_filter", f"not a jq program: {error}")

    def _pattern(self, text: str, path: str, problems: Problems, *, case_sensitive: bool) -> CompiledPattern | None:
        try:
            return self.compiler.pattern(text, case_sensitive=case_sensitive)
        except InvalidExpression as error:
            problems.add(path, f"not a regular expression: {error}")
            return None


def _mode(section: Section) -> Mode:
    text = section.text("queue_mode")
    if text is not None and text not in tuple(Mode):
        section.problem("queue_mode", f"expected steal, exclusive or mirror, not {shown(text)}")
        return Mode.STEAL
    return Mode(text or Mode.STEAL)


def _refuse_filters(section: Section) -> None:
    for name in FILTERS:
        if section.fields.get(name) is not None:
            section.problem(
                name,
                "is not allowed with queue_mode exclusive, which feature.copy_target.scale_down implies: the session "
                "gets every message, and what a filter leaves would wait unread",
            )
