"""In-memory ports of `signalbox.splitting.ports`, with the conditions of each write.

The suite in tests/adapters/splitting/test_splits.py checks the stores and the AWS adapters for the same behaviour.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from signalbox.errors import EffectFailed, EffectRefused
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sending import MAXIMUM_ENTRIES, Batch, SentBatch
from signalbox.splitting.consumers.registry import ConsumedQueue, Registry
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import (
    Forwarder,
    ForwardingState,
    QueueUse,
    Sample,
    TargetState,
    TemporaryQueue,
)
from signalbox.splitting.model.split import Split, SplitQueue, SplitSession
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import ORIGINAL_QUEUE, OpenCall, SentBack, StoredRegistry, StoredSplit, UnreadableSplit
from tests.fakes.clock import START, MemoryTime


@dataclass
class MemorySplits:
    """`beside` are the dictionaries by target that are deleted with a split; `unreadable` are only listed."""

    records: dict[Target, StoredSplit] = field(default_factory=dict)
    queues: dict[QueueName, Target] = field(default_factory=dict)
    beside: list[dict[Target, object]] = field(default_factory=list)
    unreadable: list[UnreadableSplit] = field(default_factory=list)

    def find(self, target: Target) -> StoredSplit | None:
        return self.records.get(target)

    def of_queue(self, original: QueueName, *, known: StoredSplit | None = None) -> StoredSplit | None:
        target = self.queues.get(original)
        return self.records.get(target) if target else None

    def every(self) -> list[StoredSplit | UnreadableSplit]:
        return [*sorted(self.records.values(), key=lambda stored: str(stored.split.target)), *self.unreadable]

    def create(self, split: Split, *, documents: Sequence[object]) -> StoredSplit | None:
        originals = [queue.original for queue in split.queues]
        if split.target in self.records or any(original in self.queues for original in originals):
            return None
        self.queues |= dict.fromkeys(originals, split.target)
        return self._put(StoredSplit(split, 1, list(documents)))

    def save(self, split: Split, *, replacing: StoredSplit) -> StoredSplit | None:
        if not self._is_as_read(replacing):
            return None
        return self._put(replace(replacing, split=split, version=replacing.version + 1))

    def forget(self, stored: StoredSplit) -> bool:
        if not self._is_as_read(stored):
            return False
        target = stored.split.target
        del self.records[target]
        self.queues = {original: owner for original, owner in self.queues.items() if owner != target}
        for kept in self.beside:
            kept.pop(target, None)
        return True

    def _is_as_read(self, stored: StoredSplit) -> bool:
        found = self.records.get(stored.split.target)
        return found is not None and found.version == stored.version

    def _put(self, stored: StoredSplit) -> StoredSplit:
        self.records[stored.split.target] = stored
        return stored


@dataclass
class MemoryLocks:
    held: dict[Target, tuple[str, datetime]] = field(default_factory=dict)

    def acquire(self, target: Target, *, holder: str, now: datetime, until: datetime) -> bool:
        found = self.held.get(target)
        if found is not None and found[0] != holder and found[1] > now:
            return False
        self.held[target] = (holder, until)
        return True

    def release(self, target: Target, *, holder: str) -> None:
        if self.held.get(target, ("",))[0] == holder:
            del self.held[target]


@dataclass
class MemoryRegistries:
    registries: dict[Target, StoredRegistry] = field(default_factory=dict)

    def find(self, target: Target) -> StoredRegistry | None:
        return self.registries.get(target)

    def every(self) -> list[StoredRegistry]:
        return sorted(self.registries.values(), key=lambda stored: str(stored.target))

    def put(self, registry: StoredRegistry) -> None:
        self.registries[registry.target] = registry

    def remove(self, target: Target) -> None:
        self.registries.pop(target, None)


@dataclass
class MemorySamples:
    """Keeps all samples; add `samples` to `MemorySplits.beside` to delete them with the split."""

    samples: dict[Target, dict[QueueName, tuple[Sample, ...]]] = field(default_factory=dict)

    def add(self, target: Target, samples: Mapping[QueueName, Sample]) -> Mapping[QueueName, tuple[Sample, ...]]:
        known = self.samples.setdefault(target, {})
        for name, sample in samples.items():
            known[name] = (*known.get(name, ()), sample)
        return dict(known)


@dataclass
class MemoryAnnotations:
    annotations: dict[Target, dict[str, str]] = field(default_factory=dict)

    def of(self, target: Target) -> Mapping[str, str]:
        return dict(self.annotations.get(target, {}))

    def put(self, target: Target, name: str, text: str) -> None:
        self.annotations.setdefault(target, {}).setdefault(name, text)

    def remove(self, target: Target, names: Sequence[str]) -> None:
        for name in names:
            self.annotations.get(target, {}).pop(name, None)


@dataclass
class MemoryHeartbeats:
    heartbeats: dict[tuple[Target, SessionId], datetime] = field(default_factory=dict)

    def record(self, target: Target, session_id: SessionId, *, now: datetime) -> None:
        self.heartbeats[target, session_id] = now

    def of(self, split: Split) -> Mapping[SessionId, datetime]:
        names = {one.session_id for one in split.sessions}
        return {name: at for (target, name), at in self.heartbeats.items() if target == split.target and name in names}


@dataclass
class MemoryLedger:
    calls: list[OpenCall] = field(default_factory=list)
    begun: list[OpenCall] = field(default_factory=list)

    def begin(self, original: QueueName, messages: Sequence[MessageId], *, now: datetime) -> OpenCall:
        call = OpenCall(original, str(len(self.begun)), now, frozenset(messages))
        self.calls.append(call)
        self.begun.append(call)
        return call

    def finish(self, call: OpenCall, done: Collection[MessageId], *, redelivered: bool) -> None:
        left = [
            replace(one, messages=one.messages.difference(done))
            if one.original == call.original and (redelivered or one.name == call.name)
            else one
            for one in self.calls
        ]
        self.calls = [one for one in left if one.messages]

    def unfinished(self, original: QueueName) -> Sequence[datetime]:
        return [one.began_at for one in self.calls if one.original == original]

    @property
    def messages(self) -> list[MessageId]:
        """Return the messages that are not finished."""
        return sorted({message for one in self.calls for message in one.messages})


@dataclass
class MemoryQueueUses:
    uses: dict[QueueName, QueueUse] = field(default_factory=dict)

    def extend(self, name: QueueName, *, until: datetime) -> bool:
        known = self.uses.get(name, QueueUse())
        if known.is_closed:
            return False
        self.uses[name] = QueueUse(max(until, known.until or until))
        return True

    def close(self, name: QueueName, *, seen: QueueUse, now: datetime) -> bool:
        known = self.uses.get(name, QueueUse())
        if known.until != seen.until:
            return False
        self.uses[name] = QueueUse(known.until, is_closed=True)
        return True

    def of(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueUse]:
        return {name: self.uses.get(name, QueueUse()) for name in names}


@dataclass
class MemoryQueueSender:
    """Keeps sent messages by queue.

    `failing` queues fail temporarily, `refusing` queues permanently with a reason. `refused_bodies` are bodies that SQS
    refuses everywhere, with the reason.
    """

    sent: dict[QueueName, list[Message]] = field(default_factory=dict)
    calls: list[Batch] = field(default_factory=list)
    failing: set[QueueName] = field(default_factory=set)
    refusing: dict[QueueName, str] = field(default_factory=dict)
    refused_bodies: dict[str, str] = field(default_factory=dict)

    def send(self, batch: Batch) -> SentBatch:
        self.calls.append(batch)
        failed, ids = [], {}
        for delivery in batch.deliveries:
            reason = self.refusing.get(batch.destination) or self.refused_bodies.get(delivery.message.body)
            if reason or batch.destination in self.failing:
                failed.append((delivery, reason))
                continue
            self.sent.setdefault(batch.destination, []).append(delivery.message)
            ids[delivery.message.message_id] = MessageId(f"{delivery.message.message_id} in {batch.destination}")
        return SentBatch(failed, ids)

    def bodies(self, name: QueueName) -> list[str]:
        """Return the bodies sent to a queue, in order."""
        return [message.body for message in self.sent.get(name, [])]


@dataclass
class MemoryDeadLetters:
    """Keeps dead letters with their original queue and reason."""

    messages: list[tuple[Message, str, str]] = field(default_factory=list)

    def dead_letter(self, message: Message, *, reason: str, attributes: Mapping[str, str] | None = None) -> None:
        self.messages.append((message, (attributes or {})[ORIGINAL_QUEUE], reason))


@dataclass
class MemoryQueue:
    """A temporary queue: waiting messages, and received ones by receipt handle."""

    created_at: datetime = START
    original: QueueName | None = None
    session: SessionId | None = None
    waiting: list[Message] = field(default_factory=list)
    in_flight: dict[str, Message] = field(default_factory=dict)


@dataclass
class MemorySplitQueues:
    """Temporary queues, and the originals into which messages are returned (`returned`).

    `refused` and `failing` have the reasons, by queue name, why a creation fails permanently or temporarily.
    `send_back` does not accept the bodies in `not_taken`. `notes` are returned by `create`.
    """

    time: MemoryTime = field(default_factory=MemoryTime)
    queues: dict[QueueName, MemoryQueue] = field(default_factory=dict)
    deleted: list[QueueName] = field(default_factory=list)
    returned: dict[QueueName, list[Message]] = field(default_factory=dict)
    refused: dict[QueueName, str] = field(default_factory=dict)
    failing: dict[QueueName, str] = field(default_factory=dict)
    not_taken: set[str] = field(default_factory=set)
    notes: Sequence[str] = ()
    handles: Iterator[int] = field(default_factory=itertools.count)

    def create(
        self, name: QueueName, queue: SplitQueue, *, target: Target, session: SplitSession | None
    ) -> Sequence[str]:
        if name in self.refused:
            raise EffectRefused(self.refused[name])
        if name in self.failing:
            raise EffectFailed(self.failing[name])
        self.queues.setdefault(
            name, MemoryQueue(self.time.now(), queue.original, session.session_id if session else None)
        )
        return self.notes

    def delete(self, name: QueueName) -> None:
        if self.queues.pop(name, None) is not None:
            self.deleted.append(name)

    def observe(
        self, names: Iterable[QueueName], *, now: datetime
    ) -> Mapping[QueueName, tuple[TemporaryQueue, Sample]]:
        found = {name: self.queues[name] for name in names if name in self.queues}
        return {
            name: (TemporaryQueue(queue.created_at), Sample(now, len(queue.waiting), len(queue.in_flight)))
            for name, queue in found.items()
        }

    def receive(self, name: QueueName) -> Sequence[tuple[Message, str]]:
        queue = self.queues[name]
        taken, queue.waiting = queue.waiting[:MAXIMUM_ENTRIES], queue.waiting[MAXIMUM_ENTRIES:]
        received = [(message, f"handle-{next(self.handles)}") for message in taken]
        queue.in_flight |= {handle: message for message, handle in received}
        return received

    def remove(self, name: QueueName, receipt_handles: Sequence[str]) -> None:
        for handle in receipt_handles:
            self.queues[name].in_flight.pop(handle, None)

    def send_back(self, original: QueueName, messages: Sequence[Message]) -> SentBack:
        failed = [message for message in messages if message.body in self.not_taken]
        taken = [message for message in messages if message not in failed]
        self.returned.setdefault(original, []).extend(taken)
        return SentBack(failed, {one.message_id: MessageId(f"{one.message_id} in {original}") for one in taken})

    def come_back(self, name: QueueName) -> None:
        """Make received messages visible again, ahead of the others."""
        queue = self.queues[name]
        queue.waiting = [*queue.in_flight.values(), *queue.waiting]
        queue.in_flight = {}


@dataclass
class MemoryForwarders:
    """Forwarders that change at once, or only at `settle` when `is_slow`."""

    time: MemoryTime = field(default_factory=MemoryTime)
    states: dict[QueueName, Forwarder] = field(default_factory=dict)
    refused: dict[QueueName, str] = field(default_factory=dict)
    failing: dict[QueueName, str] = field(default_factory=dict)
    is_slow: bool = False

    def observe(self, originals: Iterable[QueueName]) -> Mapping[QueueName, Forwarder]:
        return {original: self.states.get(original, Forwarder()) for original in originals}

    def start(self, original: QueueName) -> None:
        if original in self.refused:
            raise EffectRefused(self.refused[original])
        if original in self.failing:
            raise EffectFailed(self.failing[original])
        self._become(original, ForwardingState.STARTING if self.is_slow else ForwardingState.ON)

    def stop(self, original: QueueName) -> None:
        self._become(original, ForwardingState.STOPPING if self.is_slow else ForwardingState.OFF)

    def remove(self, original: QueueName) -> None:
        self.states.pop(original, None)

    def settle(self) -> None:
        """Complete all starts and stops."""
        for original, forwarder in list(self.states.items()):
            if forwarder.state is ForwardingState.STARTING:
                self._become(original, ForwardingState.ON)
            elif forwarder.state is ForwardingState.STOPPING:
                self._become(original, ForwardingState.OFF)

    def _become(self, original: QueueName, state: ForwardingState) -> None:
        self.states[original] = Forwarder(state, self.time.now())


@dataclass
class MemoryTargets:
    """Targets that switch at once, or only at `settle` when `is_slow`.

    `found` has the queues of each existing target; `switches` has each call's name and target.
    """

    found: dict[Target, Sequence[ConsumedQueue]] = field(default_factory=dict)
    states: dict[Target, TargetState] = field(default_factory=dict)
    variables: dict[Target, Mapping[str, QueueName]] = field(default_factory=dict)
    switches: list[tuple[str, Target]] = field(default_factory=list)
    refused: dict[Target, str] = field(default_factory=dict)
    failing: dict[Target, str] = field(default_factory=dict)
    is_slow: bool = False
    due: dict[Target, TargetState] = field(default_factory=dict)

    def find(self, registry: Registry) -> Sequence[ConsumedQueue]:
        if registry.target not in self.found:
            raise EffectRefused(f"there is no target {registry.target}")
        return self.found[registry.target]

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        known = self.variables.get(registry.target, {})
        return {variable: str(names.get(original, original)) for variable, original in known.items()}

    def observe(self, split: Split, registry: Registry) -> TargetState:
        if split.target not in self.found:
            return TargetState.GONE
        return self.states.get(split.target, TargetState.ORIGINAL)

    def switch(self, split: Split, registry: Registry) -> None:
        self._switch("switch", split.target, TargetState.TEMPORARY)

    def switch_back(self, split: Split, registry: Registry) -> None:
        self._switch("switch_back", split.target, TargetState.ORIGINAL)

    def settle(self) -> None:
        """Complete all switches."""
        self.states |= self.due
        self.due = {}

    def _switch(self, name: str, target: Target, state: TargetState) -> None:
        if target in self.refused:
            raise EffectRefused(self.refused[target])
        if target in self.failing:
            raise EffectFailed(self.failing[target])
        self.switches.append((name, target))
        if self.is_slow:
            self.due[target] = state
            self.states[target] = TargetState.CHANGING
            return
        self.states[target] = state


@dataclass
class MemoryAuditTrail:
    """Events by message id; events before the given day are left out."""

    by_message: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    def events(self, message_id: str, *, since: date) -> Sequence[Mapping[str, object]]:
        return [event for event in self.by_message.get(message_id, []) if event["occurred_at"] >= since.isoformat()]


@dataclass
class MemoryStore:
    """All stores; annotations and samples are deleted with their split."""

    splits: MemorySplits = field(default_factory=MemorySplits)
    locks: MemoryLocks = field(default_factory=MemoryLocks)
    registries: MemoryRegistries = field(default_factory=MemoryRegistries)
    samples: MemorySamples = field(default_factory=MemorySamples)
    annotations: MemoryAnnotations = field(default_factory=MemoryAnnotations)
    heartbeats: MemoryHeartbeats = field(default_factory=MemoryHeartbeats)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    uses: MemoryQueueUses = field(default_factory=MemoryQueueUses)

    def __post_init__(self) -> None:
        self.splits.beside = [self.samples.samples, self.annotations.annotations]
