"""Registries: the queues that a target consumes, and the sources of their names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from signalbox.queues import QueueName
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import Target
from signalbox.splitting.queues.names import DEFAULT_TEMPLATE

DEFAULT_SWITCH_TIMEOUT = timedelta(seconds=120)  # mirrord's workloadRestartTimeout


class SourceKind(StrEnum):
    """The kind of a name source; the values are field names of registry files."""

    VARIABLE = "env"
    VARIABLES_LIKE = "envLike"
    EVENT_SOURCE = "eventSource"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class NameSource:
    """A source of queue names.

    `key` is a variable's name, a pattern for variables' names, or the queue of an event source mapping; a parameter
    needs none. `fallback` is the value if the variable does not exist. `selector` is a jq program that finds the names
    in a JSON value, and `pattern` finds the name inside a longer text. `containers` restricts the source to these
    containers. `variable` is the variable from which a local command reads the name, for targets that have none.
    """

    kind: SourceKind
    key: str = ""
    fallback: str | None = None
    selector: str | None = None
    pattern: str | None = None
    containers: tuple[str, ...] = ()
    variable: str | None = None

    @property
    def is_whole_value(self) -> bool:
        """Return whether the names are the whole values of one variable, and not what a pattern or program finds."""
        return self.selector is None and self.pattern is None and self.kind is not SourceKind.VARIABLES_LIKE


@dataclass(frozen=True, slots=True)
class RegisteredQueue:
    """A queue id with its name sources, the tags of its temporary queues and the message format."""

    queue_id: QueueId
    sources: tuple[NameSource, ...]
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    sns: bool = False
    s3_event: bool = False


@dataclass(frozen=True, slots=True)
class ConsumedQueue:
    """A queue that a target consumes, resolved from its registry and its variables.

    `maximum_receives` is that of its redrive policy; None without one.
    """

    queue_id: QueueId
    original: QueueName
    visibility: timedelta
    sns: bool = False
    tags: tuple[tuple[str, str], ...] = ()
    s3_event: bool = False
    maximum_receives: int | None = None


@dataclass(frozen=True, slots=True)
class Registry:
    """The registry of a target. Without a `drain_timeout`, draining has no time limit."""

    target: Target
    queues: tuple[RegisteredQueue, ...]
    switch_timeout: timedelta = DEFAULT_SWITCH_TIMEOUT
    drain_timeout: timedelta | None = None
    name_template: str = DEFAULT_TEMPLATE

    def of(self, queue_ids: Iterable[QueueId]) -> "Registry":
        """Return the registry with these queues alone."""
        known = set(queue_ids)
        return replace(self, queues=tuple(queue for queue in self.queues if queue.queue_id in known))
