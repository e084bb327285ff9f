"""A run of a replay: it claims, sends and settles messages at a limited rate, and can be resumed after a kill."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from signalbox.errors import UnavailableError
from signalbox.history.replay_state import RateLimit, ReplayProgress, SendResult

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class ReplayStopped(UnavailableError):
    """Raised when SQS accepts no more messages; the replay's record lists the accepted and refused ones."""


@dataclass(frozen=True, slots=True)
class SourceMessage(Generic[Item_co]):
    """A message of a source, with `origin`, its unique id within the source."""

    origin: str
    item: Item_co


class ReplaySource(Protocol[Item_co]):
    """The source of a replay's messages: an exported log, a dead-letter queue, or the kept messages of a queue."""

    @property
    def is_repeatable(self) -> bool:
        """True if a later run reads the same messages in the same order from a position on."""

    def take(self, count: int, progress: ReplayProgress) -> Sequence[SourceMessage[Item_co]]:
        """Return at most `count` next messages; an empty sequence at the end.

        A run gets each message once. Messages that earlier runs sent (`progress.kept`) are discarded, and those in
        `progress.retained` are skipped.
        """

    def discard(self, origins: Collection[str]) -> None:
        """Remove messages that were sent from the source."""


class ReplayRecords(Protocol):
    """The store of a replay's record."""

    def save(self, progress: ReplayProgress) -> None:
        """Write the record. Raises when another run has changed it."""


@dataclass(frozen=True, slots=True)
class ReplayRun(Generic[Item]):
    """A run of a replay; `send` returns the outcome of each message and raises for none of them."""

    source: ReplaySource[Item]
    send: Callable[[Sequence[SourceMessage[Item]]], SendResult]
    records: ReplayRecords
    limit: RateLimit
    is_fifo: bool
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    report_progress: Callable[[ReplayProgress], None]

    def execute(self, progress: ReplayProgress) -> ReplayProgress:
        """Send the remaining messages, and return the finished record. Raises `ReplayStopped`."""
        progress, sent = self._resumed(progress), 0
        while messages := self.source.take(self.limit.burst, progress):
            self.sleep(self.limit.seconds_until_next(sent, now=self.monotonic()))
            progress = self._sent(progress.claimed([one.origin for one in messages], at=self.now()), messages)
            sent += len(messages)
        finished = progress.finished()
        self.records.save(finished)
        self.report_progress(finished)
        return finished

    def _resumed(self, progress: ReplayProgress) -> ReplayProgress:
        """Send the last claim of a killed run again if a FIFO queue still deduplicates it; otherwise it is doubtful."""
        if progress.claim is None or not self.source.is_repeatable:
            return progress.resumed(now=self.now(), is_fifo=False)
        messages = self.source.take(len(progress.claim.ids), progress)
        resumed = progress.resumed(now=self.now(), is_fifo=self.is_fifo)
        return resumed if resumed.claim is None else self._sent(resumed, messages)

    def _sent(self, claimed: ReplayProgress, messages: Sequence[SourceMessage[Item]]) -> ReplayProgress:
        self.records.save(claimed)
        outcome = self.send(messages)
        settled = claimed.settled(outcome)
        # Before the wait for the next burst, where a kill is most likely, and before messages leave the source.
        self.records.save(settled)
        self.source.discard(settled.last)
        self.report_progress(settled)
        if outcome.is_stopped:
            untaken = len(outcome.refused) + len(outcome.doubtful)
            raise ReplayStopped(
                f"replay {settled.replay_id!r}: SQS did not take {untaken} messages; its record has them"
            )
        return settled
