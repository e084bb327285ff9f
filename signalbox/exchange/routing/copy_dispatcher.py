"""The dispatcher of copies: sends batches of ten, dead-letters final failures and returns retryable ones."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from signalbox.errors import EffectFailed
from signalbox.exchange.messages.copies import Copy, retry_message
from signalbox.exchange.messages.headers import OWN_NAMES
from signalbox.exchange.messages.properties import TOPIC, dead_letter_message
from signalbox.exchange.model.bindings import DeclaredName
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
class NewDeadLetter:
    """A message for the dead-letter queue of the queue `next_to`, or else of the stage, and the reason.

    Of a message that the exchange did not write, attributes such as `publisher` are headers: the sender wrote them.
    """

    message: Message
    reason: str
    next_to: QueueName | None = None
    own_names: Collection[str] = (TOPIC,)

    def delivery(self, letter_id: MessageId, queue: QueueName) -> Delivery:
        """Return the delivery to a dead-letter queue, with an id among those of all calls."""
        dead = dead_letter_message(self.message, own_names=self.own_names, reason=self.reason, is_fifo=is_fifo(queue))
        return Delivery(replace(dead, message_id=letter_id), queue)


@dataclass(frozen=True, slots=True)
class DeadCopy:
    """A copy in a dead-letter queue, the reason, and whether that is a refusal of its queue.

    If the queue is gone, so is its dead-letter queue.
    """

    copy: Copy
    reason: str
    is_refused: bool = False
    is_gone: bool = False

    @property
    def letter(self) -> NewDeadLetter:
        """Return the dead letter."""
        is_of_stage = self.is_gone or is_existing(self.copy.queue)
        next_to = None if is_of_stage else self.copy.destination
        return NewDeadLetter(self.copy.message, self.reason, next_to, OWN_NAMES)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A copy that its queue did not take, the reason if it is permanent, and the result of the call."""

    copy: Copy
    reason: str | None
    sent: SentBatch


@dataclass(slots=True)
class DispatchResult:
    """The outcomes of copies. `failed` may be retried; `stuck` could not be moved to any queue.

    Those in `omitted` are above a limit: another copy of the publication is a dead letter in their place.
    """

    delivered: list[Copy] = field(default_factory=list)
    failed: list[Copy] = field(default_factory=list)
    retried: list[Copy] = field(default_factory=list)
    dead: list[DeadCopy] = field(default_factory=list)
    stuck: list[Copy] = field(default_factory=list)
    omitted: list[Copy] = field(default_factory=list)

    @property
    def done(self) -> list[Copy]:
        """Return the copies that are accounted for."""
        return [*self.delivered, *self.retried, *(one.copy for one in self.dead), *self.omitted]

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
        self.omitted += other.omitted


@dataclass(frozen=True, slots=True)
class CopyDispatcher:
    """Sends copies to their queues, to a retry queue or to a dead-letter queue.

    `attempts` are those of a call to a queue of the stage, with pauses. A copy is tried once; the retry queue repeats
    it.
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
        """Send copies to their queues; dead-letter those that SQS refuses permanently, or when the patience ends.

        A copy in `failed` that did not wait before has a reserved place among the waiting copies.
        """
        by_destination = {(copy.message_id, copy.destination): copy for copy in copies}
        outcome = DispatchResult()
        gone = self._without_their_queue(by_destination.values())
        for place in gone:
            del by_destination[place]
        self._dead_letter_copies(gone.values(), outcome)
        calls = list(batches(Delivery(copy.message, copy.destination) for copy in by_destination.values()))
        failures: list[_Failure] = []
        for batch, sent in zip(calls, self.parallel_map(self._sent, calls), strict=True):
            reasons = {delivery.message.message_id: reason for delivery, reason in sent.failed}
            for copy in (by_destination[one.message.message_id, batch.destination] for one in batch.deliveries):
                if copy.message_id in reasons:
                    failures.append(_Failure(copy, reasons[copy.message_id], sent))
                else:
                    outcome.delivered.append(replace(copy, delivered_as=sent.ids.get(copy.message_id)))
        self._sort(failures, outcome, patience)
        return outcome

    def retry_later(self, copies: Iterable[Copy], outcome: DispatchResult) -> None:
        """Send copies with a reserved place to the retry queues, and add them to the result."""
        waiting = {message.message_id: (copy, message) for copy in copies for message in (retry_message(copy),)}
        left = self._left(Delivery(message, self._retry_queue(copy)) for copy, message in waiting.values())
        stuck = [copy for copy, message in waiting.values() if message.message_id in left]
        self.refusals.count(stuck, -1)
        outcome.retried += [copy for copy, message in waiting.values() if message.message_id not in left]
        outcome.stuck += stuck

    def give_up(self, copies: Iterable[Copy], outcome: DispatchResult, *, reason: str) -> None:
        """Dead-letter refused copies without another attempt, and add them to the result."""
        self._dead_letter_copies([DeadCopy(copy, reason, is_refused=True) for copy in copies], outcome)

    def follow(self, copies: Sequence[Copy], refused: DeadCopy) -> DispatchResult:
        """Give up the copies behind a refused one that have waited as long as it; return the result for all of them."""
        outcome = DispatchResult()
        ended = [copy for copy in copies if self.refusals.has_waited(copy)]
        self.give_up(ended, outcome, reason=refused.reason)
        outcome.failed += [copy for copy in copies if copy not in ended]
        return outcome

    def dead_letter(self, letters: Mapping[MessageId, NewDeadLetter]) -> Collection[MessageId]:
        """Send dead letters, ten in a call; the stage's dead-letter queue gets those that another one does not take.

        Return the ids of the dead letters that neither queue took.
        """
        left = self._left(
            one.delivery(letter_id, dead_letter_name(one.next_to)) for letter_id, one in letters.items() if one.next_to
        )
        return self._left(
            one.delivery(letter_id, self.dead_letter_queue)
            for letter_id, one in letters.items()
            if letter_id in left or not one.next_to
        )

    def _dead_letter_copies(self, dead: Iterable[DeadCopy], outcome: DispatchResult) -> None:
        by_id = {one.copy.waiting_id: one for one in dead}
        left = self.dead_letter({waiting_id: one.letter for waiting_id, one in by_id.items()})
        for waiting_id, one in by_id.items():
            if waiting_id in left:
                outcome.stuck.append(one.copy)
            else:
                outcome.dead.append(one)

    def _without_their_queue(self, copies: Iterable[Copy]) -> Mapping[tuple[MessageId, QueueName], DeadCopy]:
        """Return the waiting copies whose queue is gone: one of its name may be of another owner."""
        waiting = [(copy, since) for copy in copies if (since := copy.waiting_since) is not None]
        created = self._created(copy.queue for copy, _ in waiting)
        gone = (copy for copy, since in waiting if (at := created[copy.queue]) is None or at > since)
        return {(copy.message_id, copy.destination): _gone(copy) for copy in gone}

    def _created(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, datetime | None]:
        wanted = list(dict.fromkeys(queues))
        return dict(zip(wanted, self.parallel_map(self.declared.created_at, wanted), strict=True))

    def _sort(self, failures: Sequence[_Failure], outcome: DispatchResult, patience: Patience | None) -> None:
        """Dead-letter the copies that end; of the others, those without a place, unless they wait already."""
        created = self._created(one.copy.queue for one in failures if one.reason is None)
        gone = {queue for queue, at in created.items() if at is None}
        dead: list[DeadCopy] = []
        left: dict[MessageId, _Failure] = {}
        for one in failures:
            reason = _end(one, patience)
            if one.copy.queue in gone:
                dead.append(_gone(one.copy))
            elif reason is None:
                left[one.copy.waiting_id] = one
            else:
                dead.append(DeadCopy(one.copy, reason))
        ended = [one.copy for one in left.values() if self.refusals.ends(one.copy, one.sent)]
        ended += self.refusals.reserve(one.copy for one in left.values() if one.copy.waiting_since is None)
        refused = [left.pop(copy.waiting_id) for copy in ended]
        dead += [DeadCopy(one.copy, _last(one.sent), is_refused=True) for one in refused]
        outcome.failed += [one.copy for one in left.values()]
        self._dead_letter_copies(dead, outcome)

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

    def _left(self, deliveries: Iterable[Delivery]) -> Collection[MessageId]:
        """Send messages to queues of the stage; return those that these do not take."""
        return {one for left in self.parallel_map(self._left_of, list(batches(deliveries))) for one in left}

    def _left_of(self, batch: Batch) -> Collection[MessageId]:
        """Make a call, and repeat what failed, unless users fill the queue: they can have SQS throttle it for long."""
        refused: set[MessageId] = set()
        is_own = batch.destination in (self.retry_queue, self.ordered_retry_queue, self.dead_letter_queue)
        for _ in self.attempts() if is_own else range(1):
            sent = self._attempted(batch)
            self.refusals.witness(sent, is_filled_by_users=not is_own)
            refused |= {one.message.message_id for one, reason in sent.failed if reason is not None}
            batch = Batch(batch.destination, tuple(one for one, reason in sent.failed if reason is None))
            if not batch.deliveries or sent.is_queue_missing or sent.is_denied:
                break
        return refused | {one.message.message_id for one in batch.deliveries}

    def _retry_queue(self, copy: Copy) -> QueueName:
        return self.ordered_retry_queue if copy.keeps_order else self.retry_queue


def _end(failure: _Failure, patience: Patience | None) -> str | None:
    """Return why a copy ends whose queue may exist; None if it may be tried again."""
    copy, sent = failure.copy, failure.sent
    if failure.reason is not None or patience is None:
        return failure.reason
    if sent.is_queue_missing and copy.attempt >= ATTEMPTS_WITHOUT_QUEUE:
        return f"queue {copy.destination!r} does not exist in SQS at attempt {copy.attempt}"
    return _last(sent) if patience.ends_with(copy) else None


def _last(sent: SentBatch) -> str:
    return f"not accepted at the last attempt: {sent.problem}"


def _gone(copy: Copy) -> DeadCopy:
    return DeadCopy(copy, f"queue {copy.queue!r} is not declared any more", is_gone=True)
