"""Summaries of registries: the queues that each splits, and where their names come from."""

from collections.abc import Iterator
from typing import TypedDict

from signalbox.splitting.consumers.registry import NameSource, Registry, SourceKind

SUBJECTS = {
    SourceKind.VARIABLE: "variable {}",
    SourceKind.VARIABLES_LIKE: "variables like {}",
    SourceKind.EVENT_SOURCE: "event source mapping of {}",
    SourceKind.VALUE: "the parameter's value",
}


class QueueSummary(TypedDict):
    """A queue id with one text for each source of names, and the tags of its temporary queues."""

    id: str
    names: list[str]
    sns: bool
    tags: dict[str, str]


class RegistrySummary(TypedDict):
    """A target with its queues; times in seconds, None for no limit."""

    target: str
    queues: list[QueueSummary]
    switch_timeout: float
    drain_timeout: float | None


def registry_summary(registry: Registry) -> RegistrySummary:
    """Return the summary of a registry as a JSON object."""
    drain = registry.drain_timeout
    return {
        "target": str(registry.target),
        "queues": [
            {"id": one.queue_id, "names": list(map(_source, one.sources)), "sns": one.sns, "tags": dict(one.tags)}
            for one in registry.queues
        ],
        "switch_timeout": registry.switch_timeout.total_seconds(),
        "drain_timeout": None if drain is None else drain.total_seconds(),
    }


def _source(source: NameSource) -> str:
    return ", ".join([SUBJECTS[source.kind].format(source.key), *_details(source)])


def _details(source: NameSource) -> Iterator[str]:
    if source.containers:
        yield f"container {' or '.join(source.containers)}"
    if source.selector is not None:
        yield f"JSON values {source.selector}"
    if source.pattern is not None:
        yield f"the part that matches {source.pattern}"
    if source.fallback is not None:
        yield f"otherwise {source.fallback}"
    if source.variable is not None:
        yield f"given to local commands as {source.variable}"
