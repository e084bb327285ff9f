"""The sender of decided batches: sends each message to its queues, and dead-letters those that SQS refuses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from signalbox.dead_letters import DeadLetters
from signalbox.errors import EffectFailed, UnavailableError
from signalbox.fifo import FifoBatch
from signalbox.messages import MessageId
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery, QueueSender, SentBatch, batches
from signalbox.splitting.forwarding.decider import DecidedBatch
from signalbox.splitting.forwarding.deliveries import deliveries
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.ports import ORIGINAL_QUEUE, Ledger, OpenCall, SplitQueues


@dataclass(frozen=True, slots=True)
class SentMessages:
    """The outcome of a batch: the messages to redeliver, and those that SQS refused, with its reasons.

    `copies` are the ids that messages got in the queues to which they were forwarded; `record` is that of the
    call while the forwarding of their queue is about to pause.
    """

    not_done: tuple[MessageId, ...]
    refused: dict[MessageId, str]
    lost_copies: set[tuple[MessageId, QueueName]]
    copies: dict[MessageId, dict[QueueName, MessageId]]
    record: OpenCall | None = None


@dataclass(slots=True)
class _Progress:
    """A batch in progress."""

    original: QueueName
    batch: FifoBatch[Sequence[Delivery]]
    refused: dict[MessageId, str] = field(default_factory=dict)
    lost_copies: set[tuple[MessageId, QueueName]] = field(default_factory=set)
    copies: dict[MessageId, dict[QueueName, MessageId]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchSender:
    """Sends decided batches. Once it `is_late`, no further message of a group is begun, so that no call is killed."""

    sender: QueueSender
    uses: UseRecorder
    dead_letters: DeadLetters
    ledger: Ledger
    queues: SplitQueues
    now: Callable[[], datetime]
    is_late: Callable[[], bool] = lambda: False

    def send(self, decided: DecidedBatch) -> SentMessages:
        """Send the messages of a batch; record them first while the forwarding of their queue is about to pause."""
        route = decided.route
        queues, deployed = route.session_queues, route.queue.deployed
        planned = [
            (one, deliveries(one, decided.decisions[one.message_id], deployed=deployed, sessions=queues))
            for one in decided.messages
        ]
        work = _Progress(route.original, FifoBatch(planned, route.queue.is_fifo))
        record = None
        if route.split.is_closing(route.original):
            record = self.ledger.begin(work.original, [one.message_id for one in decided.messages], now=self.now())
        while ready := work.batch.take_ready():
            for call in batches(chain.from_iterable(ready)):
                self._send(call, work)
            if self.is_late():  # after the first message, so that each call makes progress
                break
        return SentMessages(work.batch.not_done(), work.refused, work.lost_copies, work.copies, record)

    def finish(self, decided: DecidedBatch, sent: SentMessages) -> None:
        """Record the end of forwarded messages while forwarding is about to pause, which waits for each of them.

        A message is finished when it cannot be redelivered. It is therefore deleted here: Lambda deletes it only after
        the call, when no record of the outcome can be written. Any other one comes again.
        """
        if sent.record is None:
            return
        done = [one for one in decided.messages if one.message_id not in sent.not_done]
        redelivered = any(one.system_attributes.get("ApproximateReceiveCount", "1") != "1" for one in done)
        try:
            self.queues.remove(sent.record.original, [str(message.document["ReceiptHandle"]) for message in done])
            self.ledger.finish(sent.record, [one.message_id for one in done], redelivered=redelivered)
        except UnavailableError:
            return  # Lambda deletes them as well, and forwarding goes on until they are given up

    def _send(self, call: Batch, work: _Progress) -> None:
        try:
            # A queue that was closed since the decision is not the owner's at the next attempt.
            sent = self.sender.send(call) if self.uses.is_open(call.destination) else _unsent(call)
        except EffectFailed:
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

    def _dead_letter(self, delivery: Delivery, reason: str, work: _Progress) -> None:
        try:
            self.dead_letters.dead_letter(delivery.message, reason=reason, attributes={ORIGINAL_QUEUE: work.original})
        except EffectFailed:
            work.batch.fail(delivery.message.message_id)
        else:
            work.refused[delivery.message.message_id] = reason


def _unsent(call: Batch) -> SentBatch:
    return SentBatch([(delivery, None) for delivery in call.deliveries])
