"""The observed state of a split: its target, its forwarders and its temporary queues; and the timings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from signalbox.queues import QueueName


class TargetState(StrEnum):
    """The queues that a target reads."""

    ORIGINAL = "original"
    MIXED = "mixed"
    """Originals and temporary queues: an interrupted switch, which must be requested again."""
    CHANGING = "changing"
    TEMPORARY = "temporary"
    GONE = "gone"
    """The target does not exist any more."""


class ForwardingState(StrEnum):
    """The state of a queue's forwarding."""

    ABSENT = "absent"
    STARTING = "starting"
    ON = "on"
    STOPPING = "stopping"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Forwarder:
    """A queue's forwarder and the moment of its last state change.

    `unfinished` has the begin of each call with unfinished messages; calls are recorded while `Split.is_closing`.
    `stop_requested_at` is the time of the last request to stop.
    """

    state: ForwardingState = ForwardingState.ABSENT
    since: datetime | None = None
    unfinished: tuple[datetime, ...] = ()
    stop_requested_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of a queue's counters; `waiting` counts visible and delayed messages."""

    at: datetime
    waiting: int
    in_flight: int

    @property
    def is_zero(self) -> bool:
        """Return whether all counters are zero."""
        return self.waiting == 0 and self.in_flight == 0


@dataclass(frozen=True, slots=True)
class QueueUse:
    """The recorded use of a temporary queue.

    Only calls that began before `until` may have sent messages to it; None if no call has. When `is_closed`, no further
    call may send to it.
    """

    until: datetime | None = None
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class TemporaryQueue:
    """An existing temporary queue, with the newest samples of its counters, oldest first.

    `use` is None for a queue that is not being emptied: it is not read.
    """

    created_at: datetime
    samples: tuple[Sample, ...] = ()
    use: QueueUse | None = None

    @property
    def has_waiting(self) -> bool:
        """Return whether the newest sample counts messages that can be received."""
        return bool(self.samples) and self.samples[-1].waiting > 0

    @property
    def held_since(self) -> datetime | None:
        """Return the time of the first of the samples that count held messages; None if the newest counts none."""
        held = held_samples(self.samples)
        return held[-1].at if held else None

    @property
    def is_unused(self) -> bool:
        """Return whether no call has sent messages to the queue, by its record, and the newest sample counts none.

        The sample counts what others sent there.
        """
        is_recorded = self.use is not None and self.use.until is None
        return is_recorded and bool(self.samples) and self.samples[-1].is_zero


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The observed target, the forwarders by original and the temporary queues by name."""

    target: TargetState
    forwarders: Mapping[QueueName, Forwarder] = field(default_factory=dict)
    queues: Mapping[QueueName, TemporaryQueue] = field(default_factory=dict)

    def forwarder(self, original: QueueName) -> Forwarder:
        """Return the forwarder of a queue."""
        return self.forwarders.get(original, Forwarder())


@dataclass(frozen=True, slots=True)
class Timings:
    """Waiting times and thresholds of the reconcile loop.

    `settle` is how long a forwarding function may still act on an older record: its timeout plus the maximum age of its
    record. SQS knows a new queue everywhere after `usable_after`. A queue is empty when its counters were zero in
    `empty_samples` samples that span `empty_for`. A session without a heartbeat for `heartbeat` ends.
    """

    settle: timedelta = timedelta(seconds=60)
    usable_after: timedelta = timedelta(seconds=1)
    empty_samples: int = 3
    empty_for: timedelta = timedelta(seconds=60)
    heartbeat: timedelta = timedelta(seconds=60)


def held_samples(samples: Sequence[Sample]) -> list[Sample]:
    """Return the newest samples, newest first, that count messages in flight, while the others do not become fewer."""
    held: list[Sample] = []
    for sample in reversed(samples):
        if sample.in_flight == 0 or (held and sample.waiting > held[-1].waiting):
            break
        held.append(sample)
    return held


def is_empty(queue: TemporaryQueue, *, since: datetime, timings: Timings) -> bool:
    """Return whether a queue has been empty for long enough, by the samples taken after `since`."""
    zeros: list[Sample] = []
    for sample in reversed(queue.samples):
        if not sample.is_zero or sample.at < since:
            break
        zeros.append(sample)
    return len(zeros) >= timings.empty_samples and zeros[0].at - zeros[-1].at >= timings.empty_for


def has_none_waiting(queue: TemporaryQueue, *, since: datetime, timings: Timings) -> bool:
    """Return whether the newest samples after `since` count no message but those in flight."""
    newest = queue.samples[-timings.empty_samples :]
    return len(newest) == timings.empty_samples and all(one.waiting == 0 and one.at >= since for one in newest)


def combined_state(states: Iterable[TargetState]) -> TargetState:
    """Return the state of a target with several queue references; a target without any counts as `ORIGINAL`."""
    found = set(states) or {TargetState.ORIGINAL}
    if TargetState.CHANGING in found:
        return TargetState.CHANGING
    return found.pop() if len(found) == 1 else TargetState.MIXED
