"""What the control plane works with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

from signalbox.clock import Clock
from signalbox.dead_letters import DeadLetters
from signalbox.errors import RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.queues import QueueName, QueueUrl
from signalbox.sending import QueueSender
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.consumers.registry_file import parse_registries
from signalbox.splitting.control.commands import Reconcile
from signalbox.splitting.forwarding.filters import Compiler
from signalbox.splitting.model.naming import DEFAULT_PREFIX, QueueNames
from signalbox.splitting.model.ports import (
    Forwarders,
    Ledger,
    Locks,
    Notes,
    Registries,
    Samples,
    SplitQueues,
    Splits,
    StoredSplit,
    Targets,
)
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target, TargetKind
from signalbox.splitting.model.world import Patience


class NoRegistry(RejectedError):
    """Raised when nothing is known of a target."""


class ControlQueue(Protocol):
    """The control plane's own queue."""

    def ask(self, command: Reconcile, *, delay: timedelta) -> None:
        """Ask for a round after a delay."""
        ...


class Discovery(Protocol):
    """Finds out what targets consume."""

    def discover(self, target: Target) -> Sequence[Mapping[str, object]]:
        """Return the documents of a registry file. Raises `RejectedError`."""
        ...


class Audits(Protocol):
    """What history tells of messages."""

    def trail(self, message_id: str, *, since: date) -> Sequence[Mapping[str, object]]:
        """Return what was done with a message from a day on, in order. Raises `RejectedError`, `UnavailableError`."""
        ...


@dataclass(frozen=True, slots=True)
class Store:
    """What is kept of splits."""

    splits: Splits
    locks: Locks
    registries: Registries
    samples: Samples
    notes: Notes
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class ControlPorts:
    """What the control plane works with; `fresh` yields random parts for names, and `record` takes history events."""

    store: Store
    sender: QueueSender
    dead_letters: DeadLetters
    queues: SplitQueues
    forwarders: Forwarders
    targets: Mapping[TargetKind, Targets]
    discovery: Discovery
    audits: Audits
    control_queue: ControlQueue
    compiler: Compiler
    clock: Clock
    fresh: Iterator[str]
    queue_url: Callable[[QueueName], QueueUrl]
    record: Callable[[Sequence[HistoryEvent]], None]
    patience: Patience = field(default_factory=Patience)
    prefix: str = DEFAULT_PREFIX

    def now(self) -> datetime:
        """Return the current moment."""
        return self.clock.now()

    def targets_of(self, target: Target) -> Targets:
        """Return what switches a target."""
        return self.targets[target.kind]

    def registry_of(self, stored: StoredSplit) -> Registry:
        """Return the registry that a split began with."""
        return self.registry_in(stored.documents, stored.split.target)

    def registry_in(self, documents: Sequence[object], target: Target) -> Registry:
        """Return a target's registry in a file's documents."""
        found = parse_registries(documents, self.compiler, prefix=self.prefix)
        return next(registry for registry in found if registry.target == target)

    def names(self, registry: Registry) -> QueueNames:
        """Return what names the temporary queues of a target."""
        return QueueNames(self.prefix, registry.name_template)


def temporary_names(split: Split) -> tuple[QueueName, ...]:
    """Return the names of all temporary queues of a split, made or still to be made."""
    deployed = (queue.deployed for queue in split.queues)
    return (*deployed, *(name for session in split.sessions for name in session.queues.values()))
