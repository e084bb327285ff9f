"""The return of unconsumed messages from temporary queues to the remaining sessions or the original."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from signalbox.errors import EffectFailed
from signalbox.fifo import FifoBatch
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery, SentBatch, batches
from signalbox.splitting.control.ports import Outlets
from signalbox.splitting.control.record_updates import changed
from signalbox.splitting.control.routes import RouteReader
from signalbox.splitting.forwarding.deliveries import is_replayed
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.forwarding.route import FILTER_STOPPED, Route
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import Decision, SessionId
from signalbox.splitting.model.filters import uses_metadata
from signalbox.splitting.model.split import SplitSession, ended
from signalbox.splitting.ports import ORIGINAL_QUEUE, SplitQueues, Splits

# The time for all filters: decisions must be sent while the record is still as it was read.
FILTER_TIME = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class MessageReturner:
    """Returns the messages of one temporary queue, ten at a time."""

    splits: Splits
    queues: SplitQueues
    outlets: Outlets
    routes: RouteReader
    route: Route
    name: QueueName
    uses: UseRecorder

    def step(self, *, to_original: bool) -> bool:
        """Return some messages, in order; return whether all of them were returned and there may be more.

        Copies that a replay of kept messages sent are deleted.

        Messages of a session are matched again against the sessions that can receive them; where a filter uses the
        metadata of S3 objects, by the function `split`, which alone can read it.
        """
        received = self.queues.receive(self.name)
        messages = [message for message, _ in received if not is_replayed(message, self.name)]
        left_by = next((one for one in self.route.split.sessions if one.queues[self.route.original] == self.name), None)
        self._record_dropped([message for message, _ in received if is_replayed(message, self.name)], left_by)
        if to_original or left_by is None or self._needs_metadata():
            undone = {one.message_id for one in self._sent_back(messages, left_by)}
        else:
            undone = set(self._forwarded(messages, left_by))
        done = [handle for message, handle in received if message.message_id not in undone]
        if done:
            self.queues.remove(self.name, done)
        return bool(done) and not undone

    def _record_dropped(self, messages: Sequence[Message], left_by: SplitSession | None) -> None:
        """Record copies of kept messages, which are deleted: their messages were consumed when they first passed."""
        if left_by is not None and messages:
            queue, target, at = self.route.queue, self.route.split.target, self.uses.now()
            self.outlets.record([events.dropped(one, left_by, queue, target, at=at) for one in messages])

    def _needs_metadata(self) -> bool:
        live = {one.session_id for one in self.route.split.live}
        claims = [claim for session, claim in self.route.claims.items() if session in live]
        return self.route.queue.s3_event and any(uses_metadata(claim.filter) for claim in claims)

    def _sent_back(self, messages: Sequence[Message], left_by: SplitSession | None) -> Sequence[Message]:
        if not messages:
            return ()
        sent = self.queues.send_back(self.route.original, messages)
        done = [message for message in messages if message not in sent.left]
        self.outlets.record(tuple(self._returned(one, None, left_by, sent.ids) for one in done))
        return sent.left

    def _forwarded(self, messages: Sequence[Message], left_by: SplitSession) -> Sequence[MessageId]:
        is_fifo = self.route.queue.is_fifo
        budget = self.routes.budget(FILTER_TIME, is_fifo=is_fifo)
        budget.on_stopped = self._end
        decisions = {one.message_id: self._decision(one, left_by, budget) for one in messages}
        # Copies for mirroring sessions were sent when the messages were first forwarded.
        planned = [(one, Delivery(one, self._destination(decisions[one.message_id]))) for one in messages]
        work = FifoBatch(planned, is_fifo)
        copies: dict[MessageId, MessageId] = {}
        dead_lettered = set(self._send(work, copies))
        undone = work.not_done()
        done = [one for one in messages if one.message_id not in {*undone, *dead_lettered}]
        self.outlets.record(tuple(self._returned(one, decisions[one.message_id], left_by, copies) for one in done))
        return undone

    def _send(self, work: FifoBatch[Delivery], copies: dict[MessageId, MessageId]) -> Iterator[MessageId]:
        """Send all batches and add the new ids to `copies`; yield the ids of messages that were dead-lettered."""
        while ready := work.take_ready():
            for call in batches(ready):
                sent = self._sent(call)
                copies |= sent.ids
                for delivery, reason in sent.failed:
                    if reason is None or not self._is_dead_lettered(delivery.message, reason):
                        work.fail(delivery.message.message_id)
                    else:
                        yield delivery.message.message_id

    def _sent(self, call: Batch) -> SentBatch:
        unsent = SentBatch([(delivery, None) for delivery in call.deliveries])
        try:
            return self.outlets.sender.send(call) if self.uses.is_open(call.destination) else unsent
        except EffectFailed:
            return unsent

    def _is_dead_lettered(self, message: Message, reason: str) -> bool:
        original = self.route.original
        try:
            self.outlets.dead_letters.dead_letter(message, reason=reason, attributes={ORIGINAL_QUEUE: original})
        except EffectFailed:
            return False
        target, now = self.route.split.target, self.uses.now()
        self.outlets.record((events.dead_letter(message, target=target, original=original, reason=reason, at=now),))
        return True

    def _decision(self, message: Message, left_by: SplitSession, budget: FilterBudget) -> Decision:
        received_at = message.first_received_at or self.uses.now()
        heirs = self.route.split.heirs(left_by, self.route.original, received_at=received_at)
        without: set[str] = set() if self.route.queue.is_fifo else budget.stopped.copy()
        metadata = self.route.metadata((message,), None)
        while True:
            asked = [one.session_id for one in heirs if one.session_id not in without]
            claims = [self.route.claims[one] for one in asked if one in self.route.claims]
            decision = decide(message, claims, sns=self.route.queue.sns, metadata=metadata, budget=budget)
            if decision.owner is None or self.uses.is_open(self._destination(decision)):
                return decision
            without.add(decision.owner)

    def _destination(self, decision: Decision) -> QueueName:
        return self.route.queue.deployed if decision.owner is None else self.route.session_queues[decision.owner]

    def _end(self, session: str, reason: str) -> None:
        end = partial(ended, session_id=SessionId(session), reason=FILTER_STOPPED + reason, now=self.uses.now())
        changed(self.splits, self.route.split.target, end)

    def _returned(
        self,
        message: Message,
        decision: Decision | None,
        left_by: SplitSession | None,
        copies: Mapping[MessageId, MessageId],
    ) -> HistoryEvent:
        return events.returned(
            message,
            decision,
            left_by=left_by.session_id if left_by else None,
            split=self.route.split,
            queue=self.route.queue,
            at=self.uses.now(),
            copy=copies.get(message.message_id),
        )
