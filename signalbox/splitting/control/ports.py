"""Ports of splitting's control plane, and the object that bundles them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from signalbox.dead_letters import DeadLetters
from signalbox.errors import EffectFailed, RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.kept.objects import KeptReader
from signalbox.kept.settings import KeepSettings
from signalbox.kept.sweeper import KeptObjects
from signalbox.queues import QueueName
from signalbox.sending import QueueSender
from signalbox.splitting.control.commands import Reconcile
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target, TargetKind
from signalbox.splitting.ports import (
    Annotations,
    Forwarders,
    Ledger,
    QueueUses,
    Samples,
    SplitQueues,
    Splits,
    Targets,
)


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
    """The stores of reconcile rounds."""

    splits: Splits
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
class Resources:
    """The AWS resources of splits: temporary queues, the forwarding to them, and the adapter of each kind of target."""

    queues: SplitQueues
    forwarders: Forwarders
    targets: Mapping[TargetKind, Targets]

    def targets_of(self, target: Target) -> Targets:
        """Return the adapter that switches a target. Raises `EffectFailed` if the setting lost all clusters."""
        if target.kind not in self.targets:
            raise EffectFailed(f"{target} runs on Kubernetes, and this stage has no cluster: set kubernetes_clusters")
        return self.targets[target.kind]


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where messages and events go: queues, the dead-letter queue, and the history, to which `record` writes."""

    sender: QueueSender
    dead_letters: DeadLetters
    record: Callable[[Sequence[HistoryEvent]], None]


def temporary_names(split: Split) -> tuple[QueueName, ...]:
    """Return the names of all temporary queues of a split, whether they exist yet or not."""
    deployed = (queue.deployed for queue in split.queues)
    return (*deployed, *(name for session in split.sessions for name in session.queues.values()))
