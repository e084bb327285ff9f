"""The loop of a subscriber: receives messages, retries failed ones and acknowledges those that are handled."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from signalbox.clients.sarracenia.subscriber import AnnouncedMessage, MessageOutcome, MessageResult, Subscriber

if TYPE_CHECKING:
    from signalbox.clients.exchange.consumer import ReceivedMessage
    from signalbox.clients.sarracenia.subscriber_store import SubscriberStore

WAIT_SECONDS = 20
SECONDS_BETWEEN_CLEANUPS = 300  # sr3's housekeeping


class MessageSource(Protocol):
    """A consumer of a queue."""

    def receive(self, *, wait_seconds: int) -> "list[ReceivedMessage]":
        """Return the available messages; wait up to `wait_seconds` for the first."""
        ...

    def ack(self, *taken: "ReceivedMessage") -> None:
        """Acknowledge messages."""
        ...


class ResultDisplay(Protocol):
    """Shows results and progress to the user."""

    def result(self, result: MessageResult) -> None:
        """Show the result of a message."""
        ...

    def status(self, text: str) -> None:
        """Replace the status line."""
        ...


class StopRequest(Protocol):
    """A request to end the loop, such as a signal."""

    @property
    def is_due(self) -> bool:
        """Return whether the loop ends after the current message."""
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context manager whose body a stop request interrupts."""
        ...


@dataclass(slots=True)
class MessageLoop:
    """Handles messages until a stop request, or until `count` messages are handled."""

    source: MessageSource
    store: "SubscriberStore"
    subscriber: Subscriber
    display: ResultDisplay
    stop: StopRequest
    count: int | None = None
    counts: Counter[MessageOutcome] = field(default_factory=Counter)
    wait_seconds: int = WAIT_SECONDS
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _cleaned_at: datetime | None = None

    def run(self) -> None:
        """Handle messages to the end. Raises the errors of the source and of the store."""
        while not self._is_over():
            self._clean()
            self._retry()
            self._receive()
        self.display.status("")

    def summary(self, state: str) -> str:
        """Return a line with the number of messages of each outcome, and of those that wait for a retry."""
        texts = [f"{count} {outcome}" for outcome, count in self.counts.items() if outcome != MessageOutcome.FAILED]
        waiting = self.store.waiting()
        return f"{state}: {', '.join(texts) or 'nothing yet'}" + (f"; {waiting} to be tried again" if waiting else "")

    def _is_over(self) -> bool:
        return self.stop.is_due or (self.count is not None and self._handled() >= self.count)

    def _handled(self) -> int:
        # A message that will be retried counts when it succeeds or is given up.
        return self.counts.total() - self.counts[MessageOutcome.FAILED]

    def _clean(self) -> None:
        ttl, now = self.subscriber.limits.duplicates_ttl, self.now()
        is_due = self._cleaned_at is None or now - self._cleaned_at >= timedelta(seconds=SECONDS_BETWEEN_CLEANUPS)
        if ttl is not None and is_due:
            self.store.delete_keys(before=now - ttl)
            self._cleaned_at = now

    def _retry(self) -> None:
        while not self._is_over() and (claimed := self.store.claim(now=self.now())) is not None:
            self.display.status(self.summary("tries again"))
            failed = claimed.failed
            result = self.subscriber.handle(failed.received, now=self.now(), earlier_attempts=failed.attempts)
            self.store.finish(claimed)
            self._count(result)

    def _receive(self) -> None:
        if self._is_over():
            return
        self.display.status(self.summary("idle"))
        taken: Sequence[ReceivedMessage] = ()
        with self.stop.waiting():
            taken = self.source.receive(wait_seconds=self._receive_seconds())
        handled: list[ReceivedMessage] = []
        try:
            for one in taken:
                if self._is_over():
                    return  # the consumer returns the remaining messages to the queue
                self.display.status(self.summary("receives"))
                self._count(self.subscriber.handle(_received(one), now=self.now()))
                handled.append(one)
        finally:
            self.source.ack(*handled)

    def _receive_seconds(self) -> int:
        """Return how long to wait for messages: at most until the next retry is due."""
        due_at = self.store.next_due()
        left = self.wait_seconds if due_at is None else (due_at - self.now()).total_seconds()
        return min(self.wait_seconds, max(1, round(left)))

    def _count(self, result: MessageResult) -> None:
        self.counts[result.outcome] += 1
        self.display.result(result)


def _received(taken: "ReceivedMessage") -> AnnouncedMessage:
    delivered = taken.delivered
    return AnnouncedMessage(delivered.body, delivered.headers, delivered.exchange, delivered.key)
