"""Ports of splitting: the stored records, the temporary queues, the forwarders and the targets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

from signalbox.errors import RejectedError
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import ConsumedQueue, Registry
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import Forwarder, QueueUse, Sample, TargetState, TemporaryQueue
from signalbox.splitting.model.split import Split, SplitQueue, SplitSession
from signalbox.splitting.model.target import Target


class SplitTooLarge(RejectedError):
    """Raised when the stage cannot store a split: too many queues or sessions, or long filters."""


@dataclass(frozen=True, slots=True)
class StoredSplit:
    """A stored split with its version number and the documents of its registry."""

    split: Split
    version: int
    documents: Sequence[object]


@dataclass(frozen=True, slots=True)
class UnreadableSplit:
    """A split whose record this version of Signalbox cannot read; only its existence is known."""

    target: str
    reason: str


APPLIED = "applied"


@dataclass(frozen=True, slots=True)
class StoredRegistry:
    """A registry: the documents of its file, which are parsed again at each use.

    `source` is `APPLIED`, or the cluster from which the documents were read at `applied_at`.
    """

    target: Target
    documents: Sequence[object]
    applied_at: datetime
    source: str = APPLIED


# The attribute of a dead letter that names the queue which the message was sent to.
ORIGINAL_QUEUE = "OriginalQueue"


class Splits(Protocol):
    """The records of all splits, written under optimistic locking."""

    def find(self, target: Target) -> StoredSplit | None:
        """Return the split of a target, or None."""

    def of_queue(self, original: QueueName, *, known: StoredSplit | None = None) -> StoredSplit | None:
        """Return the split that an original queue belongs to, or None; `known` is read only if it has changed."""

    def every(self) -> list[StoredSplit | UnreadableSplit]:
        """Return all splits; an unreadable record does not hide the others."""

    def create(self, split: Split, *, documents: Sequence[object]) -> StoredSplit | None:
        """Store a new record; return None if the target has one or a queue belongs to another split."""

    def save(self, split: Split, *, replacing: StoredSplit) -> StoredSplit | None:
        """Store a changed record; return None if the stored record is not `replacing` any more."""

    def forget(self, stored: StoredSplit) -> bool:
        """Delete a record with its samples and annotations; return whether the stored version was `stored`."""


class Locks(Protocol):
    """Locks by target, each with an expiry time."""

    def acquire(self, target: Target, *, holder: str, now: datetime, until: datetime) -> bool:
        """Acquire or extend the lock of a target; return whether `holder` has it."""

    def release(self, target: Target, *, holder: str) -> None:
        """Release the lock if `holder` has it."""


class Registries(Protocol):
    """The registries of targets."""

    def find(self, target: Target) -> StoredRegistry | None:
        """Return a target's registry, or None."""

    def every(self) -> list[StoredRegistry]:
        """Return all registries."""

    def put(self, registry: StoredRegistry) -> None:
        """Store a registry, replacing an older one; a running split keeps the registry that it began with."""

    def remove(self, target: Target) -> None:
        """Delete a target's registry; a missing one is no error."""


class Samples(Protocol):
    """The newest samples of the temporary queues' counters."""

    def add(self, target: Target, samples: Mapping[QueueName, Sample]) -> Mapping[QueueName, tuple[Sample, ...]]:
        """Add a sample for each queue of a split, and return the samples that are kept, oldest first.

        Older samples are dropped unless the check for emptiness needs them.
        """


class Annotations(Protocol):
    """Texts by name that adapters keep for a target while it is split, such as a value before the switch."""

    def of(self, target: Target) -> Mapping[str, str]:
        """Return all annotations of a target by name."""

    def put(self, target: Target, name: str, text: str) -> None:
        """Store an annotation unless one of that name exists."""

    def remove(self, target: Target, names: Sequence[str]) -> None:
        """Delete annotations; names that do not exist are ignored."""


class Heartbeats(Protocol):
    """The newest heartbeats of sessions, apart from their record, each write of which costs a unit for a kilobyte."""

    def record(self, target: Target, session_id: SessionId, *, now: datetime) -> None:
        """Record a heartbeat of a session."""

    def of(self, split: Split) -> Mapping[SessionId, datetime]:
        """Return the recorded heartbeats under the names of a split's sessions."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """The record of a call that began to forward messages of a closing queue."""

    original: QueueName
    name: str
    began_at: datetime
    messages: frozenset[MessageId]
    """The messages that no call has finished."""


class Ledger(Protocol):
    """The calls that began to forward messages of a closing queue, until their messages are finished."""

    def begin(self, original: QueueName, messages: Sequence[MessageId], *, now: datetime) -> OpenCall:
        """Record that a call begins to forward messages, one at least; return its record."""

    def finish(self, call: OpenCall, done: Collection[MessageId], *, redelivered: bool) -> None:
        """Remove messages that cannot be redelivered any more from the record, which ends with its last message.

        With `redelivered`, remove them from the records of all other calls, too.
        """

    def unfinished(self, original: QueueName) -> Sequence[datetime]:
        """Return the begin of each call with unfinished messages."""


class QueueUses(Protocol):
    """The recorded uses of temporary queues, whose names are never used again."""

    def extend(self, name: QueueName, *, until: datetime) -> bool:
        """Record that calls which begin before `until` may send messages to a queue; return False if it is closed."""

    def close(self, name: QueueName, *, seen: QueueUse, now: datetime) -> bool:
        """Close a queue if its recorded use is still `seen`; return whether it is closed."""

    def of(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueUse]:
        """Return the recorded use of each queue."""


@dataclass(frozen=True, slots=True)
class SentBack:
    """The result of sending messages back: the ones that were not accepted, and the new ids of the others."""

    left: Sequence[Message] = ()
    ids: Mapping[MessageId, MessageId] = field(default_factory=lambda: MappingProxyType({}))


class SplitQueues(Protocol):
    """The temporary queues."""

    def create(
        self, name: QueueName, queue: SplitQueue, *, target: Target, session: SplitSession | None
    ) -> Sequence[str]:
        """Create a queue like the original and tag it; return notes on settings that could not be copied.

        Raises `EffectRefused` and `EffectFailed`.
        """

    def delete(self, name: QueueName) -> None:
        """Delete a queue; a queue that does not exist is ignored."""

    def observe(
        self, names: Iterable[QueueName], *, now: datetime
    ) -> Mapping[QueueName, tuple[TemporaryQueue, Sample]]:
        """Return the existing queues by name, each with one new sample of its counters."""

    def receive(self, name: QueueName) -> Sequence[tuple[Message, str]]:
        """Receive up to ten messages with their receipt handles; FIFO groups in order."""

    def remove(self, name: QueueName, receipt_handles: Sequence[str]) -> None:
        """Delete messages that were received from a queue, which may be an original. Raises `EffectFailed`."""

    def send_back(self, original: QueueName, messages: Sequence[Message]) -> SentBack:
        """Send messages to their original queue, in order."""


class Forwarders(Protocol):
    """The forwarders of originals: event source mappings to the function `split`."""

    def observe(self, originals: Iterable[QueueName]) -> Mapping[QueueName, Forwarder]:
        """Return the state of each forwarder, without `unfinished`."""

    def start(self, original: QueueName) -> None:
        """Create or enable a forwarder. Raises `EffectRefused` and `EffectFailed`."""

    def stop(self, original: QueueName) -> None:
        """Disable a forwarder."""

    def remove(self, original: QueueName) -> None:
        """Delete a forwarder."""


class Targets(Protocol):
    """The deployed consumers of one kind; `registry` is the registry that the split began with."""

    def find(self, registry: Registry) -> Sequence[ConsumedQueue]:
        """Return the queues that a target consumes. Raises `RejectedError` with the reference that names no queue."""

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        """Return the variables for a local command: the original values with the queue names replaced by `names`."""

    def observe(self, split: Split, registry: Registry) -> TargetState:
        """Return which queues the target reads now."""

    def switch(self, split: Split, registry: Registry) -> None:
        """Switch the target to the queues `SplitQueue.deployed`. Raises `EffectRefused` and `EffectFailed`."""

    def switch_back(self, split: Split, registry: Registry) -> None:
        """Switch the target back to the originals. Raises `EffectRefused` and `EffectFailed`."""
