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
from signalbox.exchange.routing.refusals import Refusals
from signalbox.messages import Message, MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, is_fifo
from signalbox.sending import Batch, Delivery, SentBatch, batches

# SQS may not know a queue for a second after its creation: one that a retry queue's fifth attempt misses is gone.
ATTEMPTS_WITHOUT_QUEUE = 5
# With the time of an attempt, what failed is delivered within two minutes of the end of the failure.
LONGEST_PAUSE = timedelta(seconds=90)
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

    def ends_with(self, copy: Copy) -> bool:
        """Return whether SQS could delete a copy before its next attempt."""
        longest = self.retention - 2 * self.pause(copy.attempt - 1)
        return copy.waiting_since is not None and self.now() - copy.waiting_since >= longest


@dataclass(frozen=True, slots=True)
class DeadCopy:
    """A copy in a dead-letter queue, the reason, and whether that is a refusal of its queue."""

    copy: Copy
    reason: str
    is_refused: bool = False


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

    @property
    def refused(self) -> Sequence[DeadCopy]:
        """Return the copies that their queues refused to the end."""
        return [one for one in self.dead if one.is_refused]

    def add(self, other: "DispatchResult") -> None:
        """Add the outcomes of other copies."""
        self.delivered += other.delivered
        self.failed += other.failed
        self.retried += other.retried
        self.dead += other.dead
        self.stuck += other.stuck


@dataclass(frozen=True, slots=True)
class CopyDispatcher:
    """Sends copies to their queues, to a retry queue or to a dead-letter queue.

    `attempts` are those of a call to a queue of the stage, with pauses. A copy is tried once: its repetition is that of
    the retry queue.
    """

    sender: CopySender
    declared: DeclaredQueues
    refusals: Refusals
    retry_queue: QueueName
    ordered_retry_queue: QueueName
    dead_letter_queue: QueueName
    attempts: Callable[[], Iterable[int]]
    parallel_map: ParallelMap = serial_map

    def deliver(self, copies: Iterable[Copy], *, patience: Patience | None = None) -> DispatchResult:
        """Send copies to their queues; dead-letter those that SQS refuses permanently, or when the patience ends."""
        self.refusals.store()
        by_destination = {(copy.message_id, copy.destination): copy for copy in copies}
        outcome = DispatchResult()
        gone = self._without_their_queue(by_destination.values())
        ended = [DeadCopy(by_destination.pop(place), reason) for place, reason in gone.items()]
        self._dead_letter_copies(ended, outcome, is_gone=True)
        calls = list(batches(Delivery(copy.message, copy.destination) for copy in by_destination.values()))
        for batch, sent in zip(calls, self.parallel_map(self._sent, calls), strict=True):
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
        left = self._left(deliveries)
        moved = [copy for copy, message in waiting.values() if message.message_id not in left]
        self.refusals.count(moved, 1)
        outcome.retried += moved
        outcome.stuck += [copy for copy, message in waiting.values() if message.message_id in left]

    def give_up(self, copies: Iterable[Copy], outcome: DispatchResult, *, reason: str) -> None:
        """Dead-letter refused copies without another attempt, and add them to the result."""
        self._dead_letter_copies([DeadCopy(copy, reason, is_refused=True) for copy in copies], outcome)

    def follow(self, copies: Sequence[Copy], refused: DeadCopy) -> DispatchResult:
        """Give up those of the copies behind a refused one that have waited as long; return them and the others."""
        outcome = DispatchResult()
        ended = [copy for copy in copies if self.refusals.has_waited(copy)]
        self.give_up(ended, outcome, reason=refused.reason)
        outcome.failed += [copy for copy in copies if copy not in ended]
        return outcome

    def dead_letter(
        self,
        message: Message,
        *,
        next_to: QueueName | None,
        reason: str,
        own_names: Collection[str] = (TOPIC,),
        is_throttled: bool = False,
    ) -> bool:
        """Send a message to the dead-letter queue of `next_to`, or else of the stage; return whether it arrived.

        Of a message that the exchange did not write, attributes such as `publisher` are headers: the sender wrote them.
        That of a queue that SQS throttles is tried once, since SQS may throttle its groups, too.
        """
        queues = [*([dead_letter_name(next_to)] if next_to else []), self.dead_letter_queue]
        dead = partial(dead_letter_message, message, own_names=own_names, reason=reason)
        for queue in queues:
            letter = Delivery(dead(is_fifo=is_fifo(queue)), queue)
            is_once = is_throttled and queue != self.dead_letter_queue
            if not (self._attempted(Batch(queue, (letter,))).failed if is_once else self._left([letter])):
                return True
        return False

    def _dead_letter_copies(self, dead: Iterable[DeadCopy], outcome: DispatchResult, *, is_gone: bool = False) -> None:
        """Send copies to their queues' dead-letter queues, or by tens to the stage's; add them to the result."""
        by_place = {(one.copy.message_id, one.copy.destination): one for one in dead}
        of_stage = {place: one for place, one in by_place.items() if is_gone or is_existing(one.copy.queue)}
        left = self._left(self._dead_letter_of_stage(one) for one in of_stage.values())
        for place, one in by_place.items():
            copy = one.copy
            if place in of_stage:
                is_taken = copy.waiting_id not in left
            else:
                is_taken = self.dead_letter(
                    copy.message,
                    next_to=copy.destination,
                    reason=one.reason,
                    own_names=OWN_NAMES,
                    is_throttled=one.is_refused,
                )
            if is_taken:
                outcome.dead.append(one)
            else:
                outcome.stuck.append(copy)

    def _dead_letter_of_stage(self, dead: DeadCopy) -> Delivery:
        queue = self.dead_letter_queue
        message = dead_letter_message(
            dead.copy.message, own_names=OWN_NAMES, reason=dead.reason, is_fifo=is_fifo(queue)
        )
        return Delivery(replace(message, message_id=dead.copy.waiting_id), queue)

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
        failures, dead = _reasons(sent), list[DeadCopy]()
        is_unknown = None in failures.values()
        is_gone = is_unknown and self.declared.created_at(failed[0].queue) is None
        for copy in failed:
            reason = failures[copy.message_id]
            has_ended = reason is None and self.refusals.ends(copy, sent)
            if is_gone:
                reason = _gone(copy)
            elif sent.is_queue_missing and patience and copy.attempt >= ATTEMPTS_WITHOUT_QUEUE:
                reason = f"queue {copy.destination!r} does not exist in SQS at attempt {copy.attempt}"
            elif reason is None and (has_ended or (patience and patience.ends_with(copy))):
                reason = f"not accepted at the last attempt: {sent.problem}"
            if reason is None:
                outcome.failed.append(copy)
            else:
                dead.append(DeadCopy(copy, reason, is_refused=has_ended))
        self._dead_letter_copies(dead, outcome, is_gone=is_gone)

    def _sent(self, batch: Batch) -> SentBatch:
        """Make a call, and a second one if it has no answer, as on a connection that SQS has closed."""
        try:
            return self.sender.send(batch)
        except EffectFailed:  # all may have been accepted: duplicates are better than losses
            return self._attempted(batch)

    def _attempted(self, batch: Batch) -> SentBatch:
        try:
            return self.sender.send(batch)
        except EffectFailed as error:
            return SentBatch([(delivery, None) for delivery in batch.deliveries], problem=str(error))

    def _left(self, deliveries: Iterable[Delivery], *, is_repeated: bool = True) -> Collection[MessageId]:
        """Send messages to queues of the stage; return those that these do not take."""
        calls = list(batches(deliveries))
        send = partial(self._left_of, attempts=self.attempts if is_repeated else lambda: range(1))
        return {one for left in self.parallel_map(send, calls) for one in left}

    def _left_of(self, batch: Batch, attempts: Callable[[], Iterable[int]]) -> Collection[MessageId]:
        refused: set[MessageId] = set()
        own = self.retry_queue, self.ordered_retry_queue, self.dead_letter_queue
        for _ in attempts():
            sent = self._attempted(batch)
            self.refusals.witness(sent, is_filled_by_users=batch.destination not in own)
            refused |= {one.message.message_id for one, reason in sent.failed if reason is not None}
            batch = Batch(batch.destination, tuple(one for one, reason in sent.failed if reason is None))
            if not batch.deliveries or sent.is_queue_missing or sent.is_denied:
                break
        return refused | {one.message.message_id for one in batch.deliveries}

    def _retry_queue(self, copy: Copy) -> QueueName:
        return self.ordered_retry_queue if copy.keeps_order else self.retry_queue


def _gone(copy: Copy) -> str:
    return f"queue {copy.queue!r} is not declared any more"


def _reasons(sent: SentBatch) -> Mapping[MessageId, str | None]:
    return {delivery.message.message_id: reason for delivery, reason in sent.failed}
