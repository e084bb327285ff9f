"""Ports of splitting's control plane, and the object that bundles them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

from signalbox.clock import Clock
from signalbox.dead_letters import DeadLetters
from signalbox.errors import EffectFailed, RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.kept.objects import KeptReader
from signalbox.kept.settings import KeepSettings
from signalbox.kept.sweeper import KeptObjects
from signalbox.queues import QueueName, QueueUrl
from signalbox.sending import QueueSender
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.consumers.registry_file import parse_registries
from signalbox.splitting.control.commands import Reconcile
from signalbox.splitting.model.filters import Compiler
from signalbox.splitting.model.observed_state import Timings
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target, TargetKind, completed_target
from signalbox.splitting.ports import (
    Annotations,
    Forwarders,
    Ledger,
    Locks,
    QueueUses,
    Registries,
    Samples,
    SplitQueues,
    Splits,
    StoredSplit,
    Targets,
)
from signalbox.splitting.queues.names import DEFAULT_PREFIX, QueueNames


class NoRegistry(RejectedError):
    """Raised when a target has no registry."""


class ControlQueue(Protocol):
    """The control plane's own queue."""

    def ask(self, command: Reconcile, *, delay: timedelta) -> None:
        """Request a reconcile run after a delay."""


class Discovery(Protocol):
    """Discovers the queues that targets consume."""

    def discover(self, target: Target) -> Sequence[Mapping[str, object]]:
        """Return the documents of a registry file. Raises `RejectedError`."""


class DeclaredRegistries(Protocol):
    """The registries that Kubernetes workloads have in their cluster."""

    def documents(self, target: Target) -> Sequence[object]:
        """Return the documents of a workload's registry; empty if it has none. Raises `RejectedError`."""


class NothingDeclared:
    """`DeclaredRegistries` of a stage without clusters."""

    def documents(self, target: Target) -> Sequence[object]:  # noqa: ARG002 - the port has it
        """Return no documents."""
        return ()


class AuditTrail(Protocol):
    """The history events of single messages."""

    def events(self, message_id: str, *, since: date) -> Sequence[Mapping[str, object]]:
        """Return the events of a message since a day, oldest first. Raises `RejectedError` and `UnavailableError`."""


class NothingRecorded(RejectedError):
    """Raised for a request of events on a stage without history."""


class NoAuditTrail:
    """`AuditTrail` of a stage without history."""

    def events(self, message_id: str, *, since: date) -> Sequence[Mapping[str, object]]:
        """Raise `NothingRecorded`."""
        del message_id, since
        raise NothingRecorded("the stage records no events: deploy it with history in the setting `capabilities`")


@dataclass(frozen=True, slots=True)
class Store:
    """The stores of splitting."""

    splits: Splits
    locks: Locks
    registries: Registries
    samples: Samples
    annotations: Annotations
    ledger: Ledger
    uses: QueueUses


@dataclass(frozen=True, slots=True)
class KeptStore:
    """The settings of kept queues, and what is kept."""

    settings: KeepSettings
    reader: KeptReader
    objects: KeptObjects


@dataclass(frozen=True, slots=True)
class ControlPorts:
    """The ports of the control plane.

    `random_parts` yields the random parts of queue names; `record` accepts history events; `clusters` has the names of
    the Kubernetes clusters, the default one first. `reads_objects` is whether the function `split` may read metadata of
    S3 objects. `kept` is None where no messages can be kept.
    """

    store: Store
    sender: QueueSender
    dead_letters: DeadLetters
    queues: SplitQueues
    forwarders: Forwarders
    targets: Mapping[TargetKind, Targets]
    discovery: Discovery
    audit_trail: AuditTrail
    control_queue: ControlQueue
    compiler: Compiler
    clock: Clock
    random_parts: Iterator[str]
    queue_url: Callable[[QueueName], QueueUrl]
    record: Callable[[Sequence[HistoryEvent]], None]
    timings: Timings = field(default_factory=Timings)
    prefix: str = DEFAULT_PREFIX
    clusters: Sequence[str] = ()
    declared: DeclaredRegistries = field(default_factory=NothingDeclared)
    reads_objects: bool = False
    kept: KeptStore | None = None

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()

    def completed(self, target: Target) -> Target:
        """Return a Kubernetes workload with its namespace and cluster. Raises `InvalidTarget`."""
        if not target.is_on_kubernetes or target.cluster:
            return target
        known = (stored.target for stored in self.store.registries.every())
        return completed_target(target, known, self.clusters)

    def targets_of(self, target: Target) -> Targets:
        """Return the adapter that switches a target. Raises `EffectFailed` if the setting lost all clusters."""
        if target.kind not in self.targets:
            raise EffectFailed(f"{target} runs on Kubernetes, and this stage has no cluster: set kubernetes_clusters")
        return self.targets[target.kind]

    def registry_of(self, stored: StoredSplit) -> Registry:
        """Return the registry that a split began with, of its queues alone."""
        found = self.registry_in(stored.documents, stored.split.target)
        return found.of(queue.queue_id for queue in stored.split.queues)

    def registry_in(self, documents: Sequence[object], target: Target) -> Registry:
        """Return a target's registry from the documents of a file."""
        found = parse_registries(documents, self.compiler, prefix=self.prefix, cluster=target.cluster)
        return next(registry for registry in found if registry.target == target)

    def names(self, registry: Registry) -> QueueNames:
        """Return the name generator for a target's temporary queues."""
        return QueueNames(self.prefix, registry.name_template)


def temporary_names(split: Split) -> tuple[QueueName, ...]:
    """Return the names of all temporary queues of a split, whether they exist yet or not."""
    deployed = (queue.deployed for queue in split.queues)
    return (*deployed, *(name for session in split.sessions for name in session.queues.values()))
