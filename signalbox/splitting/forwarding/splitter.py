"""The splitter: forwards received messages by the record of their split, and cancels failing sessions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain

from signalbox.dead_letters import DeadLetters
from signalbox.errors import EffectFailed, UnavailableError
from signalbox.fifo import FifoBatch
from signalbox.history.event import HistoryEvent
from signalbox.kept.objects import KeptWriter, kept_batch
from signalbox.messages import Message, MessageId
from signalbox.optimistic_update import optimistic_update
from signalbox.queues import QueueName, is_fifo
from signalbox.sending import Batch, Delivery, QueueSender, SentBatch, batches
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.route import FILTER_STOPPED, Route
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import Decision, SessionId
from signalbox.splitting.model.filters import Compiler
from signalbox.splitting.model.s3_objects import BatchMetadata, ObjectMetadata
from signalbox.splitting.model.split import ended
from signalbox.splitting.ports import ORIGINAL_QUEUE, Ledger, SplitQueues, Splits

RECORD_AGE = timedelta(seconds=2)
"""The maximum age of the record by which messages are forwarded; it is part of `Timings.settle`."""
SAVE_TRIES = 10  # other writers: heartbeats of each session every few seconds, and the control function
REASON_CHARACTERS = 500  # of a reason, which may quote a filter of any length; the record must stay small


class SplitUnknown(UnavailableError):
    """Raised for messages of a queue that belongs to no split; they stay in the queue."""


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """The result of a batch: the messages to redeliver, the history events and the cancelled sessions."""

    not_done: tuple[MessageId, ...]
    events: tuple[HistoryEvent, ...]
    cancelled: tuple[SessionId, ...]


@dataclass(slots=True)
class _Work:
    """One batch in progress. `is_certain` is false if it is unknown whether a message was sent.

    `copies` are the ids that messages got in the queues to which they were forwarded.
    """

    route: Route
    decisions: Mapping[MessageId, Decision]
    messages: Sequence[Message]
    batch: FifoBatch[Sequence[Delivery]]
    refused: dict[MessageId, str] = field(default_factory=dict)
    lost_copies: set[tuple[MessageId, QueueName]] = field(default_factory=set)
    copies: dict[MessageId, dict[QueueName, MessageId]] = field(default_factory=dict)
    is_certain: bool = True


@dataclass(slots=True)
class Splitter:
    """Forwards batches of messages; caches the record and its compiled filters.

    Use it from one thread only. `settle` is `Timings.settle`. All filters together take at most `filter_time`, so that
    every message of a batch is decided and sent within the function's timeout. `objects` reads the metadata of S3
    objects, in less than that. `kept` is called for queues that are kept, before anything is sent.
    """

    splits: Splits
    ledger: Ledger
    uses: UseRecorder
    sender: QueueSender
    dead_letters: DeadLetters
    queues: SplitQueues
    compiler: Compiler
    now: Callable[[], datetime]
    settle: timedelta
    filter_time: timedelta
    objects: ObjectMetadata | None = None
    kept: KeptWriter | None = None
    _routes: dict[QueueName, Route] = field(default_factory=dict, init=False)

    def forward(self, messages: Sequence[Message], original: QueueName, *, call_id: str) -> ForwardResult:
        """Send the messages of an original to their recipients.

        Raises `SplitUnknown` and `NotKept` before anything is sent.
        """
        budget = FilterBudget.of(self.compiler, self.filter_time, is_fifo=is_fifo(original))
        route = self._route(original, budget)
        cancelled = self._end_unreadable(route)
        # At once, so that a call that is killed by the next filter has ended the session of this one.
        budget.on_stopped = lambda session, reason: cancelled.extend(
            self._ended(SessionId(session), route, reason=FILTER_STOPPED + reason)
        )
        work = self._work(messages, self._decisions(messages, route, budget), route)
        kept = tuple(self._keep(work))
        if route.split.is_closing(original):
            self._send_with_ledger(work, call_id)
        else:
            self._send_all(work)
        return ForwardResult(tuple(work.batch.not_done()), (*kept, *self._events(work)), tuple(cancelled))

    def _route(self, original: QueueName, budget: FilterBudget) -> Route:
        now = self.now()
        known = self._routes.get(original)
        if known is not None and now - known.read_at < RECORD_AGE:
            return known
        stored = self.splits.of_queue(original)
        queues = stored.split.queues if stored else ()
        queue = next((one for one in queues if one.original == original), None)
        if stored is None or queue is None:
            raise SplitUnknown(f"queue {original!r} belongs to no split")
        configs = known.configs if known else {}
        self._routes[original] = Route.of(stored, queue, budget=budget, read_at=now, settle=self.settle, known=configs)
        return self._routes[original]

    def _decisions(self, messages: Sequence[Message], route: Route, budget: FilterBudget) -> dict[MessageId, Decision]:
        started = self.now()
        metadata = route.metadata(messages, self.objects)
        return {
            message.message_id: self._decision(
                message, route, received_at=message.first_received_at or started, metadata=metadata, budget=budget
            )
            for message in messages
        }

    def _decision(
        self,
        message: Message,
        route: Route,
        *,
        received_at: datetime,
        metadata: BatchMetadata | None,
        budget: FilterBudget,
    ) -> Decision:
        """Return the decision by the sessions whose queues are open.

        Nothing has been sent to a FIFO queue that is closed, so that this changes no earlier decision on a message.
        """
        # In a FIFO queue every message is evaluated: a retry must send it to the same queue again.
        without = set() if route.queue.is_fifo else {SessionId(one) for one in budget.stopped}
        while True:
            decision = route.decision(
                message, received_at=received_at, without=without, metadata=metadata, budget=budget
            )
            if decision.owner is None or self.uses.is_open(route.queue_of(decision.owner)):
                return decision
            without.add(decision.owner)

    def _end_unreadable(self, route: Route) -> list[SessionId]:
        """End the sessions whose filters cannot be read, each with its reason; return their ids."""
        return [
            session_id
            for unreadable, reason in route.unreadable.items()
            for session_id in self._ended(unreadable, route, reason=reason)
        ]

    def _ended(self, session_id: SessionId, route: Route, *, reason: str) -> tuple[SessionId, ...]:
        """End a live session; return its id, or nothing if another call has ended it."""
        is_live = any(one.session_id == session_id for one in route.split.live)
        return (session_id,) if is_live and self._end(session_id, route, reason=reason) else ()

    def _end(self, session_id: SessionId, route: Route, *, reason: str) -> bool:
        self._routes[route.original] = replace(route, read_at=route.read_at - RECORD_AGE)  # so that it is read again

        def attempt() -> bool | None:
            stored = self.splits.find(route.split.target)
            if stored is None:
                return False
            changed = ended(stored.split, session_id, reason=reason[:REASON_CHARACTERS], now=self.now())
            if changed is stored.split:
                return False  # already ending
            return True if self.splits.save(changed, replacing=stored) else None

        # After too many concurrent writes, the next call finds the same filter and tries again.
        return optimistic_update(attempt, tries=SAVE_TRIES) or False

    def _work(self, messages: Sequence[Message], decisions: Mapping[MessageId, Decision], route: Route) -> _Work:
        planned = [(message, route.deliveries(message, decisions[message.message_id])) for message in messages]
        return _Work(route, decisions, messages, FifoBatch(planned, route.queue.is_fifo))

    def _keep(self, work: _Work) -> Iterator[HistoryEvent]:
        """Store the messages of a kept queue in one object, and yield their events."""
        if self.kept is not None and work.route.queue.is_kept:
            batch = kept_batch(work.route.original, work.messages, at=self.now())
            self.kept.put(batch)
            yield from events.kept(work.messages, batch.stored_as, target=work.route.split.target)

    def _send_with_ledger(self, work: _Work, call_id: str) -> None:
        """Send while forwarding is about to pause, which waits until each call has finished.

        A call has finished when no message that it sent can be redelivered, and all others were certainly not sent. The
        messages are therefore deleted here: Lambda deletes them only after the call, when no record of its outcome can
        be written.
        """
        original = work.route.original
        self.ledger.begin(original, call_id, now=self.now())
        self._send_all(work)
        if work.is_certain and self._is_removed(work):
            self.ledger.finish(original, call_id)

    def _is_removed(self, work: _Work) -> bool:
        not_done = work.batch.not_done()
        done = [one for one in work.messages if one.message_id not in not_done]
        try:
            self.queues.remove(work.route.original, [str(message.document["ReceiptHandle"]) for message in done])
        except EffectFailed:
            return False  # Lambda deletes them as well
        return True

    def _send_all(self, work: _Work) -> None:
        while ready := work.batch.take_ready():
            for call in batches(chain.from_iterable(ready)):
                self._send(call, work)

    def _send(self, call: Batch, work: _Work) -> None:
        try:
            # A queue that was closed since the decision is not the owner's at the next attempt.
            sent = self.sender.send(call) if self.uses.is_open(call.destination) else _unsent(call)
        except EffectFailed:
            work.is_certain = False
            sent = _unsent(call)
        for message_id, copy in sent.ids.items():
            work.copies.setdefault(message_id, {})[call.destination] = copy
        for delivery, reason in sent.failed:
            if reason is None:
                work.batch.fail(delivery.message.message_id)
            elif delivery.is_copy:  # its owner gets the message, so it is not dead-lettered
                work.lost_copies.add((delivery.message.message_id, delivery.destination))
            else:
                self._dead_letter(delivery, reason, work)

    def _dead_letter(self, delivery: Delivery, reason: str, work: _Work) -> None:
        try:
            self.dead_letters.dead_letter(
                delivery.message, reason=reason, attributes={ORIGINAL_QUEUE: work.route.original}
            )
        except EffectFailed:
            work.batch.fail(delivery.message.message_id)
        else:
            work.refused[delivery.message.message_id] = reason

    def _events(self, work: _Work) -> Iterator[HistoryEvent]:
        split, queue, at = work.route.split, work.route.queue, self.now()
        not_done = work.batch.not_done()
        for message in work.messages:
            reason = work.refused.get(message.message_id)
            if message.message_id in not_done:
                continue
            if reason is not None:
                yield events.dead_letter(message, target=split.target, original=queue.original, reason=reason, at=at)
            else:
                copies = work.copies.get(message.message_id, {})
                yield from events.routed(message, _taken(message, work), split=split, queue=queue, at=at, copies=copies)


def _unsent(call: Batch) -> SentBatch:
    return SentBatch([(delivery, None) for delivery in call.deliveries])


def _taken(message: Message, work: _Work) -> Decision:
    """Return the decision on a message without its refused copies."""
    decision = work.decisions[message.message_id]
    lost = {destination for message_id, destination in work.lost_copies if message_id == message.message_id}
    queues = {session.session_id: session.queues[work.route.original] for session in work.route.split.sessions}
    return replace(decision, copies=tuple(one for one in decision.copies if queues[one] not in lost))
