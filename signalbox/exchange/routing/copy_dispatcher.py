"""The dispatcher of copies: sends batches of ten, dead-letters final failures and returns retryable ones."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial

from signalbox.errors import EffectFailed
from signalbox.exchange.messages.copies import Copy, retry_message
from signalbox.exchange.messages.headers import OWN_NAMES
from signalbox.exchange.messages.properties import TOPIC, dead_letter_message
from signalbox.exchange.model.names import dead_letter_name, is_existing
from signalbox.exchange.routing.ports import CopySender, DeclaredQueues
from signalbox.messages import Message, MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, is_fifo
from signalbox.sending import Batch, Delivery, SentBatch, batches

# SQS may not know a queue for a second after its creation: one that a retry queue's fifth attempt misses is gone.
ATTEMPTS_WITHOUT_QUEUE = 5
# With the time of an attempt, what failed is delivered within two minutes of the end of the failure.
LONGEST_PAUSE = timedelta(seconds=90)
# The owner of an existing queue can let it refuse copies for ever, and SQS delivers nothing more of a retry queue with
# 120,000 messages in flight. New permissions and keys take minutes.
PATIENCE_WITH_OTHERS = timedelta(minutes=15)
MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Patience:
    """Pauses of copies; `first_pause` is the visibility timeout of the retry queues, `retention` their retention."""

    first_pause: timedelta
    retention: timedelta
    now: Callable[[], datetime]

    def pause(self, receives: int) -> timedelta:
        """Return the pause after a message was received this often: it doubles up to the longest pause."""
        doubled = self.first_pause * (1 << min(receives - 1, MOST_DOUBLINGS))
        return max(self.first_pause, min(doubled, LONGEST_PAUSE))

    def ends_with(self, copy: Copy, *, is_denied: bool) -> bool:
        """Return whether the attempt of a copy was its last one.

        After it, SQS could delete the copy before the next attempt, or an existing queue `is_denied` to the router for
        15 minutes. An outage of SQS or of KMS is no such refusal.
        """
        longest = self.retention - 2 * self.pause(copy.attempt - 1)
        if is_denied and is_existing(copy.queue):
            longest = min(longest, PATIENCE_WITH_OTHERS)
        return copy.waiting_since is not None and self.now() - copy.waiting_since >= longest


@dataclass(frozen=True, slots=True)
class DeadCopy:
    """A copy in a dead-letter queue, and the reason."""

    copy: Copy
    reason: str


@dataclass(slots=True)
class DispatchResult:
    """The outcomes of copies. `failed` may be retried; `stuck` could not be moved to any queue."""

    delivered: list[Copy] = field(default_factory=list)
    failed: list[Copy] = field(default_factory=list)
    retried: list[Copy] = field(default_factory=list)
    dead: list[DeadCopy] = field(default_factory=list)
    stuck: list[Copy] = field(default_factory=list)

    @property
    def done(self) -> list[Copy]:
        """Return the copies that are accounted for."""
        return [*self.delivered, *self.retried, *(one.copy for one in self.dead)]

    def add(self, other: "DispatchResult") -> None:
        """Add the outcomes of other copies."""
        self.delivered += other.delivered
        self.failed += other.failed
        self.retried += other.retried
        self.dead += other.dead
        self.stuck += other.stuck


@dataclass(frozen=True, slots=True)
class CopyDispatcher:
    """Sends copies to their queues, to a retry queue or to a dead-letter queue."""

    sender: CopySender
    declared: DeclaredQueues
    retry_queue: QueueName
    ordered_retry_queue: QueueName
    dead_letter_queue: QueueName
    parallel_map: ParallelMap = serial_map

    def deliver(self, copies: Iterable[Copy], *, patience: Patience | None = None) -> DispatchResult:
        """Send copies to their queues; dead-letter those that SQS refuses permanently, or when the patience ends."""
        by_destination = {(copy.message_id, copy.destination): copy for copy in copies}
        outcome = DispatchResult()
        for place, reason in self._without_their_queue(by_destination.values()).items():
            self._dead_letter_copy(by_destination.pop(place), outcome, reason=reason, is_gone=True)
        for batch, sent in self._calls(Delivery(copy.message, copy.destination) for copy in by_destination.values()):
            failures = _reasons(sent)
            copies_sent = [by_destination[one.message.message_id, batch.destination] for one in batch.deliveries]
            outcome.delivered += [
                replace(copy, delivered_as=sent.ids.get(copy.message_id))
                for copy in copies_sent
                if copy.message_id not in failures
            ]
            self._sort([copy for copy in copies_sent if copy.message_id in failures], sent, outcome, patience)
        return outcome

    def retry_later(self, copies: Iterable[Copy], outcome: DispatchResult) -> None:
        """Send copies to the retry queues, and add them to the result."""
        waiting = {message.message_id: (copy, message) for copy in copies for message in (retry_message(copy),)}
        deliveries = (Delivery(message, self._retry_queue(copy)) for copy, message in waiting.values())
        for batch, sent in self._calls(deliveries):
            failures = _reasons(sent)
            for delivery in batch.deliveries:
                copy, message = waiting[delivery.message.message_id]
                (outcome.stuck if message.message_id in failures else outcome.retried).append(copy)

    def dead_letter(
        self, message: Message, *, next_to: QueueName | None, reason: str, own_names: Collection[str] = (TOPIC,)
    ) -> bool:
        """Send a message to the dead-letter queue of `next_to`, or else of the stage; return whether it arrived.

        Of a message that the exchange did not write, attributes such as `publisher` are headers: the sender wrote them.
        """
        queues = [*([dead_letter_name(next_to)] if next_to else []), self.dead_letter_queue]
        dead = partial(dead_letter_message, message, own_names=own_names, reason=reason)
        return any(self._is_taken(dead(is_fifo=is_fifo(queue)), queue) for queue in queues)

    def _dead_letter_copy(self, copy: Copy, outcome: DispatchResult, *, reason: str, is_gone: bool = False) -> None:
        """Send a copy to its queue's dead-letter queue, or the stage's without one; add it to the result."""
        next_to = None if is_gone or is_existing(copy.queue) else copy.destination
        if self.dead_letter(copy.message, next_to=next_to, reason=reason, own_names=OWN_NAMES):
            outcome.dead.append(DeadCopy(copy, reason))
        else:
            outcome.stuck.append(copy)

    def _without_their_queue(self, copies: Iterable[Copy]) -> Mapping[tuple[MessageId, QueueName], str]:
        """Return the reason for each waiting copy whose queue is gone: one of its name may be of another owner."""
        created_at, reasons = cache(self.declared.created_at), {}
        for copy in copies:
            if copy.waiting_since is not None:
                created = created_at(copy.queue)
                if created is None or created > copy.waiting_since:
                    reasons[copy.message_id, copy.destination] = _gone(copy)
        return reasons

    def _sort(
        self, failed: Sequence[Copy], sent: SentBatch, outcome: DispatchResult, patience: Patience | None
    ) -> None:
        failures = _reasons(sent)
        is_gone = None in failures.values() and self.declared.created_at(failed[0].queue) is None
        for copy in failed:
            reason = failures[copy.message_id]
            if is_gone:
                reason = _gone(copy)
            elif sent.is_queue_missing and patience and copy.attempt >= ATTEMPTS_WITHOUT_QUEUE:
                reason = f"queue {copy.destination!r} does not exist in SQS at attempt {copy.attempt}"
            elif reason is None and patience and patience.ends_with(copy, is_denied=sent.is_denied):
                reason = f"not accepted at the last attempt: {sent.problem}"
            if reason is None:
                outcome.failed.append(copy)
            else:
                self._dead_letter_copy(copy, outcome, reason=reason, is_gone=is_gone)

    def _calls(self, deliveries: Iterable[Delivery]) -> Iterable[tuple[Batch, SentBatch]]:
        calls = list(batches(deliveries))
        return zip(calls, self.parallel_map(self._send, calls), strict=True)

    def _send(self, batch: Batch) -> SentBatch:
        try:
            return self.sender.send(batch)
        except EffectFailed as error:  # all may have been accepted: duplicates are better than losses
            return SentBatch([(delivery, None) for delivery in batch.deliveries], problem=str(error))

    def _is_taken(self, message: Message, queue: QueueName) -> bool:
        return not self._send(Batch(queue, (Delivery(message, queue),))).failed

    def _retry_queue(self, copy: Copy) -> QueueName:
        return self.ordered_retry_queue if copy.keeps_order else self.retry_queue


def _gone(copy: Copy) -> str:
    return f"queue {copy.queue!r} is not declared any more"


def _reasons(sent: SentBatch) -> Mapping[MessageId, str | None]:
    return {delivery.message.message_id: reason for delivery, reason in sent.failed}
