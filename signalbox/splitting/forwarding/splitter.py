"""The splitter: decides on received messages, keeps and forwards them, and reports the outcome of each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.history.event import HistoryEvent
from signalbox.kept.objects import KeptWriter, kept_batch
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.splitting.forwarding.batch_sender import BatchSender, SentMessages
from signalbox.splitting.forwarding.decider import DecidedBatch, Decider
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import Decision, SessionId


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """The result of a batch: the messages to redeliver, the history events and the cancelled sessions."""

    not_done: tuple[MessageId, ...]
    events: tuple[HistoryEvent, ...]
    cancelled: tuple[SessionId, ...]


@dataclass(frozen=True, slots=True)
class Splitter:
    """Forwards batches of messages.

    `kept` is called for queues that are kept, before anything is sent; None where no messages can be kept. `record`
    takes the history events of a batch, before any of its messages is deleted.
    """

    decider: Decider
    kept: KeptWriter | None
    sender: BatchSender
    record: Callable[[Sequence[HistoryEvent]], None]
    now: Callable[[], datetime]

    def forward(self, messages: Sequence[Message], original: QueueName) -> ForwardResult:
        """Send the messages of an original to their recipients.

        Raises `SplitUnknown` and `NotKept` before anything is sent.
        """
        decided = self.decider.decide(messages, original)
        kept = self._keep(decided)
        sent = self.sender.send(decided)
        happened = (*kept, *_events(decided, sent, at=self.now()))
        self.record(happened)
        self.sender.finish(decided, sent)
        return ForwardResult(sent.not_done, happened, decided.cancelled)

    def _keep(self, decided: DecidedBatch) -> Sequence[HistoryEvent]:
        """Store the messages of a kept queue in one object, and return their events."""
        route = decided.route
        if self.kept is None or not route.queue.is_kept:
            return ()
        batch = kept_batch(route.original, decided.messages, at=self.now())
        self.kept.put(batch)
        return tuple(batch.stored_as.events(decided.messages, events.CAPABILITY, target=str(route.split.target)))


def _events(decided: DecidedBatch, sent: SentMessages, *, at: datetime) -> Iterator[HistoryEvent]:
    split, queue = decided.route.split, decided.route.queue
    for message in decided.messages:
        reason = sent.refused.get(message.message_id)
        if message.message_id in sent.not_done:
            continue
        if reason is not None:
            yield events.dead_letter(message, target=split.target, original=queue.original, reason=reason, at=at)
        else:
            copies = sent.copies.get(message.message_id, {})
            decision = _taken(message, decided, sent)
            yield from events.routed(message, decision, split=split, queue=queue, at=at, copies=copies)


def _taken(message: Message, decided: DecidedBatch, sent: SentMessages) -> Decision:
    """Return the decision on a message without its refused copies."""
    decision = decided.decisions[message.message_id]
    lost = {destination for message_id, destination in sent.lost_copies if message_id == message.message_id}
    queues = decided.route.session_queues
    return replace(decision, copies=tuple(one for one in decision.copies if queues[one] not in lost))
