"""The keeper of copies: stores those of kept queues before they are sent, one object for each queue."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.events import CAPABILITY
from signalbox.history.event import HistoryEvent
from signalbox.kept.objects import KeptBatch, KeptWriter, NotKept, kept_batch
from signalbox.messages import MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName

LONG_AGO = datetime.min.replace(tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class KeepResult:
    """The publications of which a copy could not be stored, and the history events of the stored copies."""

    failed: frozenset[MessageId]
    events: tuple[HistoryEvent, ...]


NOTHING_KEPT = KeepResult(frozenset(), ())


@dataclass(slots=True)
class CopyKeeper:
    """Stores copies. An instance gives each object a later key than the one before, in a FIFO queue's order."""

    writer: KeptWriter
    parallel_map: ParallelMap = serial_map
    _last: datetime = field(default=LONG_AGO, init=False)

    def keep(self, copies: Sequence[Copy], *, now: datetime) -> KeepResult:
        """Store copies of any queues; without copies nothing is called."""
        by_queue: dict[QueueName, list[Copy]] = {}
        for copy in copies:
            by_queue.setdefault(copy.destination, []).append(copy)
        self._last = max(now, self._last + MILLISECOND) if copies else self._last
        messages = {queue: [copy.message for copy in found] for queue, found in by_queue.items()}
        objects = [kept_batch(queue, found, at=self._last) for queue, found in messages.items()]
        failed: set[MessageId] = set()
        recorded: list[HistoryEvent] = []
        for batch, is_stored in zip(objects, self.parallel_map(self._is_stored, objects), strict=True):
            found = messages[batch.stored_as.queue]
            if is_stored:
                recorded += batch.stored_as.events(found, CAPABILITY)
            else:
                failed |= {message.message_id for message in found}
        return KeepResult(frozenset(failed), tuple(recorded))

    def _is_stored(self, batch: KeptBatch) -> bool:
        try:
            self.writer.put(batch)
        except NotKept:
            return False
        return True
