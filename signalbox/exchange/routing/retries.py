"""The retrier of copies: sends them again after growing pauses, in order on FIFO queues."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from signalbox.exchange.messages.copies import Copy, InvalidRetry, read_retry
from signalbox.exchange.messages.publications import Rejection, attempt
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.batch_reader import NO_POISON
from signalbox.exchange.routing.batch_report import BatchReport, RoutingResult
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher, DispatchResult, NewDeadLetter, Patience
from signalbox.exchange.routing.ports import CounterWriter, Heads
from signalbox.exchange.routing.refusals import Refusals
from signalbox.fifo import FifoBatch
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class _RetryEntry:
    """A message of a retry queue, and its copy or the reason why it has none."""

    message: Message
    content: Copy | Rejection


@dataclass(frozen=True, slots=True)
class Retrier:
    """Delivers the copies in the retry queues."""

    heads: Heads
    dispatcher: CopyDispatcher
    refusals: Refusals
    counters: CounterWriter
    names: StageNames
    patience: Patience
    now: Callable[[], datetime]

    def retry(
        self, messages: Sequence[Message], *, is_ordered: bool, poison: Mapping[MessageId, str] = NO_POISON
    ) -> RoutingResult:
        """Deliver copies; dead-letter those that are never accepted, and return the others for redelivery.

        Messages in `poison` are dead-lettered unread, each with its reason.
        """
        entries = [self._entry(message, poison) for message in messages]
        batch = FifoBatch([(entry.message, entry) for entry in entries], is_ordered)
        report = BatchReport(self.now())
        deliver = partial(self.dispatcher.deliver, patience=self.patience)
        while ready := batch.take_ready():
            refused = {one.copy.waiting_id: one for one in self._process(ready, batch, report, deliver).refused}
            for entry in ready:
                if isinstance(entry.content, Copy) and (dead := refused.get(entry.content.waiting_id)):
                    behind = batch.take_behind(entry.message.message_id)
                    self._process(behind, batch, report, partial(self.dispatcher.follow, refused=dead))
        self.counters.add(report.counts(), at=report.at)
        left = batch.not_done()
        pauses = {one.message_id: self.patience.pause(attempt(one)) for one in messages if one.message_id in left}
        return RoutingResult(left, tuple(report.events), pauses)

    def _entry(self, message: Message, poison: Mapping[MessageId, str]) -> _RetryEntry:
        if message.message_id in poison:
            return _RetryEntry(message, Rejection(message, poison[message.message_id]))
        try:
            return _RetryEntry(message, read_retry(message, self.names))
        except InvalidRetry as error:
            return _RetryEntry(message, Rejection(message, str(error)))

    def _process(
        self,
        entries: Sequence[_RetryEntry],
        batch: FifoBatch[_RetryEntry],
        report: BatchReport,
        deliver: Callable[[Sequence[Copy]], DispatchResult],
    ) -> DispatchResult:
        rejected = [entry.content for entry in entries if isinstance(entry.content, Rejection)]
        letters = {one.message.message_id: NewDeadLetter(one.message, one.reason) for one in rejected}
        left = set(self.dispatcher.dead_letter(letters))
        for rejection in rejected:
            if rejection.message.message_id not in left:
                report.add_rejection(rejection, None)
        outcome = deliver([one.content for one in entries if isinstance(one.content, Copy)])
        self.refusals.count(outcome.done, -1)
        self.refusals.count([*outcome.failed, *outcome.stuck], 0)
        self._end_detours(outcome)
        report.add_dispatch(outcome)
        left |= {copy.waiting_id for copy in (*outcome.failed, *outcome.stuck)}
        for entry in entries:
            name = entry.content.waiting_id if isinstance(entry.content, Copy) else entry.message.message_id
            if name in left:
                batch.fail(entry.message.message_id)
        return outcome

    def _end_detours(self, outcome: DispatchResult) -> None:
        """End the detours whose last copies are in the queue, or never will be: now later ones may go directly."""
        last: dict[tuple[ExchangeName, RoutingKey, QueueName], int] = {}
        for copy in (*outcome.delivered, *(dead.copy for dead in outcome.dead)):
            if copy.sequence is not None and copy.keeps_order:
                place = copy.exchange, copy.key, copy.destination
                last[place] = max(copy.sequence, last.get(place, 0))
        for copy in (*outcome.failed, *outcome.stuck):
            last.pop((copy.exchange, copy.key, copy.destination), None)
        for (exchange, key, queue), sequence in last.items():
            self.heads.end_detour(exchange, key, queue, last=sequence)
