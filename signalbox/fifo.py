"""A received SQS batch, processed so that no message overtakes a failed one of its FIFO message group."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from signalbox.messages import Message, MessageId

Work = TypeVar("Work")


@dataclass(slots=True)
class FifoBatch(Generic[Work]):
    """A received batch as pairs of a message and the work that it causes.

    In a FIFO queue one message of each group is ready at a time, and none behind a failed one: a redelivery finds the
    order unchanged, and no SQS call holds two messages of one group, of which the first could fail alone. In a
    standard queue all messages are ready at once, and each fails alone. With `key_of`, one message of each key is ready
    at a time, too, although its messages may be in several groups.
    """

    entries: Sequence[tuple[Message, Work]]
    is_fifo: bool
    key_of: Callable[[Work], str] | None = None
    _waiting: Sequence[tuple[Message, Work]] = field(init=False)
    _failed: set[MessageId] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._waiting = self.entries

    def take_ready(self) -> list[Work]:
        """Remove and return the work that may be done now, in order; empty when nothing is left to do."""
        left = {message.message_id for message, _ in self._waiting}
        failed = [entry for entry in self.entries if entry[0].message_id in self._failed - left]
        blocked = {place for entry in failed for place in self._places(*entry)}
        ready, waiting = [], []
        for message, work in self._waiting:
            places = self._places(message, work)
            if self.is_fifo and (message.message_id in self._failed or blocked & places):
                waiting.append((message, work))
            else:
                ready.append(work)
            blocked |= places
        self._waiting = waiting
        return ready

    def _places(self, message: Message, work: Work) -> set[tuple[str, str | None]]:
        return {("group", message.group_id), *([("key", self.key_of(work))] if self.key_of else [])}

    def take_behind(self, message_id: MessageId) -> list[Work]:
        """Remove and return the work behind a message in its group, in order."""
        group = next(message.group_id for message, _ in self.entries if message.message_id == message_id)
        behind = [entry for entry in self._waiting if entry[0].group_id == group]
        self._waiting = [entry for entry in self._waiting if entry[0].group_id != group]
        return [work for _, work in behind]

    def fail(self, message_id: MessageId) -> None:
        """Record a retryable failure: SQS must deliver the message again. Messages without a failure are done."""
        self._failed.add(message_id)

    def recall(self, message_ids: Collection[MessageId]) -> None:
        """Record failures of messages that were done, and of everything behind them in their groups."""
        groups: set[str | None] = set()
        for message, _ in self.entries:
            if message.message_id in message_ids:
                groups.add(message.group_id)
            if message.group_id in groups:
                self._failed.add(message.message_id)

    def unblocked(self) -> list[Work]:
        """Return the work of the messages that have not failed and follow no failed one of their group."""
        blocked: set[str | None] = set()
        unblocked = []
        for message, work in self.entries:
            if message.message_id in self._failed:
                blocked.add(message.group_id)
            if message.group_id not in blocked:
                unblocked.append(work)
        return unblocked

    def not_done(self) -> tuple[MessageId, ...]:
        """Return the messages to report for redelivery: the failed ones, and in a FIFO queue those behind them."""
        left = self._failed | {message.message_id for message, _ in self._waiting}
        return tuple(message.message_id for message, _ in self.entries if message.message_id in left)
