"""The world as it is found: the target, what forwards messages, and the temporary queues."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from signalbox.queues import QueueName


class TargetState(StrEnum):
    """From where a target reads its queues."""

    ORIGINAL = "original"
    MIXED = "mixed"
    """Some from one place and some from the other: a switch was broken off, and is to be asked for again."""
    CHANGING = "changing"
    TEMPORARY = "temporary"
    GONE = "gone"
    """There is no such target any more."""


class ForwardingState(StrEnum):
    """Whether messages of a queue are forwarded."""

    ABSENT = "absent"
    STARTING = "starting"
    ON = "on"
    STOPPING = "stopping"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Forwarder:
    """What forwards the messages of a queue, and since when it is in its state.

    `unfinished` counts the calls since it was last started that said they began, and not that they finished; they say
    so while `Split.is_closing`.
    """

    state: ForwardingState = ForwardingState.ABSENT
    since: datetime | None = None
    unfinished: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """What a queue's counters said: `waiting` are the visible and the delayed."""

    at: datetime
    waiting: int
    in_flight: int

    @property
    def is_zero(self) -> bool:
        """Say whether all counters are zero."""
        return self.waiting == 0 and self.in_flight == 0


@dataclass(frozen=True, slots=True)
class TemporaryQueue:
    """A temporary queue that is there, with the newest samples of its counters, oldest first."""

    created_at: datetime
    samples: tuple[Sample, ...] = ()

    @property
    def has_waiting(self) -> bool:
        """Say whether messages can be taken out, as far as is known."""
        return bool(self.samples) and self.samples[-1].waiting > 0


@dataclass(frozen=True, slots=True)
class World:
    """What is there: the target, what forwards the originals, and the temporary queues by name."""

    target: TargetState
    forwarders: Mapping[QueueName, Forwarder] = field(default_factory=dict)
    queues: Mapping[QueueName, TemporaryQueue] = field(default_factory=dict)

    def forwarder(self, original: QueueName) -> Forwarder:
        """Return what forwards a queue's messages."""
        return self.forwarders.get(original, Forwarder())


@dataclass(frozen=True, slots=True)
class Patience:
    """How long what is waited for.

    `settle` is how long a function that forwards may still work by an older record: its time-out, and the age of the
    record that it works by. SQS knows a new queue everywhere after `usable_after`, and that a queue is empty when its
    counters were zero in `empty_samples` samples that cover `empty_for`.
    """

    settle: timedelta = timedelta(seconds=60)
    usable_after: timedelta = timedelta(seconds=1)
    empty_samples: int = 3
    empty_for: timedelta = timedelta(seconds=60)
    heartbeat: timedelta = timedelta(seconds=60)


def is_empty(queue: TemporaryQueue, *, since: datetime, patience: Patience) -> bool:
    """Say whether a queue has been empty for long enough, by samples taken after a moment."""
    zeros: list[Sample] = []
    for sample in reversed(queue.samples):
        if not sample.is_zero or sample.at < since:
            break
        zeros.append(sample)
    return len(zeros) >= patience.empty_samples and zeros[0].at - zeros[-1].at >= patience.empty_for
