"""Carrying out a replay: claim, send, settle, at a given pace; killed anywhere, the next run goes on."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from signalbox.errors import UnavailableError
from signalbox.history.replay_state import Pace, Progress, Sent

Item = TypeVar("Item")


class ReplayStopped(UnavailableError):
    """Raised when SQS takes nothing any more; what it had and had not taken is in the replay's record."""


@dataclass(frozen=True, slots=True)
class Ready(Generic[Item]):
    """A message that is ready to be sent, by the id that tells it from all others of its source."""

    origin: str
    item: Item


class Source(Protocol[Item]):
    """Where a replay's messages come from."""

    @property
    def is_repeatable(self) -> bool:
        """Whether a later run gets the same messages in the same order, from a position on."""
        ...

    def take(self, count: int, progress: Progress) -> Sequence[Ready[Item]]:
        """Return the next messages, so many at most; none when there are no more.

        None comes twice in a run. What earlier runs sent (`kept`) is dropped, and what is `left_alone` is.
        """
        ...

    def forget(self, origins: Collection[str]) -> None:
        """Drop messages that were sent for good."""
        ...


class Records(Protocol):
    """Where a replay's record is kept."""

    def save(self, progress: Progress) -> None:
        """Keep the record. Raises when another run has changed it."""
        ...


@dataclass(frozen=True, slots=True)
class Run(Generic[Item]):
    """One run of a replay; `send` says of each message what became of it, and never raises for one of them."""

    source: Source[Item]
    send: Callable[[Sequence[Ready[Item]]], Sent]
    records: Records
    pace: Pace
    is_fifo: bool
    now: Callable[[], datetime]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    tell: Callable[[Progress], None]

    def carry_out(self, progress: Progress) -> Progress:
        """Send what is left, and return the record of how it ended. Raises `ReplayStopped`."""
        progress, sent = self._resumed(progress), 0
        while ready := self.source.take(self.pace.burst, progress):
            self.sleep(self.pace.seconds_until_next(sent, now=self.clock()))
            progress = self._sent(progress.claimed([one.origin for one in ready], at=self.now()), ready)
            sent += len(ready)
        finished = progress.finished()
        self.records.save(finished)
        self.tell(finished)
        return finished

    def _resumed(self, progress: Progress) -> Progress:
        """Go on where a run was killed: its last claim is sent again if that is harmless, else it is in doubt."""
        if progress.claim is None or not self.source.is_repeatable:
            return progress.resumed(now=self.now(), is_fifo=False)
        ready = self.source.take(len(progress.claim.ids), progress)
        resumed = progress.resumed(now=self.now(), is_fifo=self.is_fifo)
        return resumed if resumed.claim is None else self._sent(resumed, ready)

    def _sent(self, claimed: Progress, ready: Sequence[Ready[Item]]) -> Progress:
        self.records.save(claimed)
        outcome = self.send(ready)
        settled = claimed.settled(outcome)
        # Before the wait for the next burst, in which most runs are killed that are, and before a queue forgets.
        self.records.save(settled)
        self.source.forget(settled.last)
        self.tell(settled)
        if outcome.is_stopped:
            untaken = len(outcome.refused) + len(outcome.doubtful)
            raise ReplayStopped(
                f"replay {settled.replay_id!r}: SQS did not take {untaken} messages; its record has them"
            )
        return settled
