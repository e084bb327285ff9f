"""The registry: which queues a target consumes, and where it has their names from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from signalbox.splitting.model.naming import DEFAULT_TEMPLATE
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import Target

DEFAULT_SWITCH_TIMEOUT = timedelta(seconds=120)  # mirrord's workloadRestartTimeout


class Place(StrEnum):
    """Where a target has a queue's name from; the values are the words of a registry file."""

    VARIABLE = "env"
    VARIABLES_LIKE = "envLike"
    EVENT_SOURCE = "eventSource"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class NameSource:
    """Where the names of queues are found.

    `key` is the name of a variable, a pattern for names of variables, or the name of the queue of an event source
    mapping; a parameter's own value needs none. `fallback` counts where the variable is not there. `selector` is a jq
    program that finds names in a JSON value, `pattern` finds the name inside a longer text, and `containers` are those
    whose variables count, where a target has several. `variable` is what a local command reads the name from, for
    targets that read none themselves.
    """

    place: Place
    key: str = ""
    fallback: str | None = None
    selector: str | None = None
    pattern: str | None = None
    containers: tuple[str, ...] = ()
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class RegisteredQueue:
    """A queue id, where the names of its queues are found, and how their messages are to be read."""

    queue_id: QueueId
    sources: tuple[NameSource, ...]
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    sns: bool = False


@dataclass(frozen=True, slots=True)
class Registry:
    """What is known of a target; without a `drain_timeout` draining takes as long as it takes."""

    target: Target
    queues: tuple[RegisteredQueue, ...]
    switch_timeout: timedelta = DEFAULT_SWITCH_TIMEOUT
    drain_timeout: timedelta | None = None
    name_template: str = DEFAULT_TEMPLATE
