"""The sender of replayed messages, which retries only where that cannot duplicate a message."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from signalbox.errors import EffectFailed
from signalbox.fifo import FifoBatch
from signalbox.history.replay_state import SendResult
from signalbox.messages import MAXIMUM_BYTES, Message, MessageId, size_bytes
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, is_fifo
from signalbox.sending import Batch, Delivery, QueueSender, SentBatch, batches

PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0)  # seconds before each attempt
NOT_TAKEN = f"SQS took it at none of {len(PAUSES)} attempts"
TOO_LONG = f"it has more than {MAXIMUM_BYTES} bytes with the header that marks it"


@dataclass(frozen=True, slots=True)
class Resender:
    """Sends replayed messages to one SQS queue, in order if it is a FIFO queue. `message_id` identifies each."""

    sender: QueueSender
    queue: QueueName
    sleep: Callable[[float], None]
    parallel_map: ParallelMap = serial_map

    def send(self, messages: Sequence[Message]) -> SendResult:
        """Send messages; return their outcomes."""
        refused = {str(one.message_id): TOO_LONG for one in messages if size_bytes(one) > MAXIMUM_BYTES}
        progress = _SendProgress([one for one in messages if one.message_id not in refused], refused)
        for pause in PAUSES:
            if progress.left:
                self.sleep(pause)
                self._attempt(progress)
        left = {str(one.message_id) for one in progress.left}
        unknown = left & progress.unknown
        return SendResult(
            taken=progress.taken,
            refused=progress.refused | dict.fromkeys(sorted(left - unknown), NOT_TAKEN),
            doubtful=(*progress.doubtful, *sorted(unknown)),
            is_stopped=bool(left),
        )

    def _attempt(self, progress: "_SendProgress") -> None:
        """Make one call for each ten messages; keep those that are not accepted for the next attempt."""
        batch = FifoBatch([(one, Delivery(one, self.queue)) for one in progress.left], is_fifo(self.queue))
        messages = {one.message_id: one for one in progress.left}
        while ready := batch.take_ready():
            calls = list(batches(ready))
            for call, sent in zip(calls, self.parallel_map(self._sent, calls), strict=True):
                for message_id in progress.record(call, sent, is_fifo=batch.is_fifo):
                    batch.fail(message_id)
        progress.left = [messages[message_id] for message_id in batch.not_done()]

    def _sent(self, call: Batch) -> SentBatch | None:
        """Make one call; return None without an answer, so that it is not known which messages SQS accepted."""
        try:
            return self.sender.send(call)
        except EffectFailed:
            return None


class _SendProgress:
    """The messages of one claim and their outcomes so far."""

    def __init__(self, left: list[Message], refused: dict[str, str]) -> None:
        self.left = left
        self.refused = refused
        self.taken: dict[str, str] = {}
        self.doubtful: list[str] = []
        self.unknown: set[str] = set()

    def record(self, call: Batch, sent: SentBatch | None, *, is_fifo: bool) -> Iterator[MessageId]:
        """Record the outcome of a call; yield the messages to send again."""
        ids = [delivery.message.message_id for delivery in call.deliveries]
        if sent is None and is_fifo:  # sending again is safe: the queue drops the messages that it has
            self.unknown |= {str(one) for one in ids}
            yield from ids
            return
        if sent is None:  # they may have been accepted, and a second call would duplicate them
            self.doubtful += map(str, ids)
            return
        failures = {delivery.message.message_id: reason for delivery, reason in sent.failed}
        for message_id in ids:
            reason = failures.get(message_id)
            if reason is not None:
                self.refused[str(message_id)] = reason
            elif message_id in failures:
                yield message_id
            else:
                self.taken[str(message_id)] = str(sent.ids.get(message_id, ""))
