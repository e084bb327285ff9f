"""What splitting asks of the world, as Protocols named for their roles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.admission import FoundQueue
from signalbox.splitting.model.split import Session, Split, SplitQueue
from signalbox.splitting.model.target import Target
from signalbox.splitting.model.world import Forwarder, Sample, TargetState, TemporaryQueue


@dataclass(frozen=True, slots=True)
class StoredSplit:
    """A split's record as it stands in the table: with the number of its version, and its registry's documents."""

    split: Split
    version: int
    documents: Sequence[object]


@dataclass(frozen=True, slots=True)
class UnreadableSplit:
    """A split whose record this version of Signalbox cannot read: that it is there is all that is known of it."""

    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredRegistry:
    """A registry as it was applied: the documents of its file, which are read anew whenever they are needed."""

    target: Target
    documents: Sequence[object]
    applied_at: datetime


# The attribute of a dead letter that names the queue which the message was sent to.
ORIGINAL_QUEUE = "OriginalQueue"


class Splits(Protocol):
    """The records of all splits; a write counts only if the record is still as it was read."""

    def find(self, target: Target) -> StoredSplit | None:
        """Return the split of a target, or None."""
        ...

    def of_queue(self, original: QueueName) -> StoredSplit | None:
        """Return the split that an original queue belongs to, or None."""
        ...

    def every(self) -> list[StoredSplit | UnreadableSplit]:
        """Return all splits; one whose record cannot be read does not hide the others."""
        ...

    def create(self, split: Split, *, documents: Sequence[object]) -> StoredSplit | None:
        """Store a new record; None if the target has one, or one of the queues belongs to another split."""
        ...

    def save(self, split: Split, *, replacing: StoredSplit) -> StoredSplit | None:
        """Store a changed record; None if the stored one is not as `replacing` any more."""
        ...

    def forget(self, stored: StoredSplit) -> bool:
        """Delete a record with all that is kept beside it; say whether it was still as it was read."""
        ...


class Locks(Protocol):
    """Who works on a target: one at a time, and nobody for longer than a function lives."""

    def take(self, target: Target, *, holder: str, now: datetime, until: datetime) -> bool:
        """Take the lock of a target, or keep it; say whether it is ours."""
        ...

    def leave(self, target: Target, *, holder: str) -> None:
        """Give the lock back."""
        ...


class Registries(Protocol):
    """What is known of targets."""

    def find(self, target: Target) -> StoredRegistry | None:
        """Return a target's registry, or None."""
        ...

    def every(self) -> list[StoredRegistry]:
        """Return all registries."""
        ...

    def put(self, registry: StoredRegistry) -> None:
        """Store a registry in the place of an older one; a running split keeps what it began with."""
        ...


class Samples(Protocol):
    """The newest samples of temporary queues' counters."""

    def note(self, target: Target, samples: Mapping[QueueName, Sample]) -> None:
        """Add a sample for each queue; the oldest are forgotten, but never one that emptiness is judged by."""
        ...

    def of(self, target: Target) -> Mapping[QueueName, tuple[Sample, ...]]:
        """Return the samples of a split's temporary queues, oldest first."""
        ...


class Notes(Protocol):
    """What an adapter must remember of a target from its first switch until the split ends, such as an old value."""

    def of(self, target: Target) -> Mapping[str, str]:
        """Return all that was noted."""
        ...

    def put(self, target: Target, name: str, text: str) -> None:
        """Note a text, unless there is one of that name already."""
        ...

    def remove(self, target: Target, names: Sequence[str]) -> None:
        """Forget one note or more; those that are gone already are fine."""
        ...


class Ledger(Protocol):
    """The calls that began to forward messages of a closing queue, and did not say that they finished."""

    def begin(self, original: QueueName, call_id: str, *, now: datetime) -> None:
        """Write down that a call begins."""
        ...

    def finish(self, original: QueueName, call_id: str) -> None:
        """Strike out a call."""
        ...

    def unfinished(self, original: QueueName, *, since: datetime) -> int:
        """Return how many calls began since then and did not finish."""
        ...


class SplitQueues(Protocol):
    """The temporary queues."""

    def create(self, name: QueueName, queue: SplitQueue, *, target: Target, session: Session | None) -> Sequence[str]:
        """Make a queue like the original; return notes on what it could not take over. Its tags say whose it is.

        Raises `EffectRefused` and `EffectFailed`.
        """
        ...

    def delete(self, name: QueueName) -> None:
        """Delete a queue; one that is gone already is fine."""
        ...

    def observe(
        self, names: Iterable[QueueName], *, now: datetime
    ) -> Mapping[QueueName, tuple[TemporaryQueue, Sample]]:
        """Return those of the queues that are there, each with one new sample of its counters."""
        ...

    def receive(self, name: QueueName) -> Sequence[tuple[Message, str]]:
        """Take up to ten messages out of a queue, with their receipt handles; FIFO groups in order."""
        ...

    def remove(self, name: QueueName, receipt_handles: Sequence[str]) -> None:
        """Delete messages that were received from a queue, which may be an original. Raises `EffectFailed`."""
        ...

    def send_back(self, original: QueueName, messages: Sequence[Message]) -> Sequence[Message]:
        """Send messages to their original queue, in order (`returned`); return those that were not taken."""
        ...


class Forwarders(Protocol):
    """What forwards messages of an original: an event source mapping to the function `split`."""

    def observe(self, originals: Iterable[QueueName]) -> Mapping[QueueName, Forwarder]:
        """Return the state of each, without `unfinished`."""
        ...

    def start(self, original: QueueName) -> None:
        """Make or enable what forwards. Raises `EffectRefused` and `EffectFailed`."""
        ...

    def stop(self, original: QueueName) -> None:
        """Disable it."""
        ...

    def remove(self, original: QueueName) -> None:
        """Take it away."""
        ...


class Targets(Protocol):
    """The deployed consumers of one kind; `registry` is the one that the split began with."""

    def find(self, registry: Registry) -> Sequence[FoundQueue]:
        """Return the queues that a target consumes. Raises `RejectedError` with the place that has no queue."""
        ...

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        """Return the variables for a local command, each as the original value was, with other queues' names."""
        ...

    def observe(self, split: Split, registry: Registry) -> TargetState:
        """Return from where the target reads now."""
        ...

    def switch(self, split: Split, registry: Registry) -> None:
        """Let it read `SplitQueue.deployed`. Raises `EffectRefused` and `EffectFailed`."""
        ...

    def switch_back(self, split: Split, registry: Registry) -> None:
        """Let it read the originals again, all as before. Raises `EffectRefused` and `EffectFailed`."""
        ...
