"""Records the messages that died in declared queues: SQS moves them to the dead-letter queue without an event."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from signalbox.control.delivery import MOVED_FROM
from signalbox.exchange.messages.end_events import died
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.names import dead_letter_name
from signalbox.exchange.model.records import DeclaredQueue
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, size_bytes
from signalbox.task_time import TaskTime

# Of a queue in one run, about: a part of the queues is read within the reserve of a task, so that none is killed.
MOST, MOST_BYTES = 1_000, 5_000_000


@dataclass(frozen=True, slots=True)
class DeadLetterService:
    """Records dead letters; they stay where they are. A repeated record has the same id."""

    ports: ControlPorts
    record: Callable[[Sequence[HistoryEvent]], None]

    def record_new(self, time: TaskTime) -> int:
        """Record the dead letters of each queue that has more of them than at the last run; return their number.

        Raises `UnavailableError`. The size of a queue takes one call.
        """
        queues = [one for one in self.ports.store.queues.every() if not one.is_deleting]
        return sum(sum(self.ports.parallel_map(self._recorded, part)) for part in time.parts(queues))

    def _recorded(self, queue: DeclaredQueue) -> int:
        name = dead_letter_name(self.ports.names.queue(queue.name))
        size = self.ports.sqs.sizes([name]).get(name)
        count = size.total if size else 0
        if count == queue.dead_letters:
            return 0
        found = self.ports.sqs.peek(name, most=MOST) if count > queue.dead_letters else ()
        # The router has recorded those that it put there itself.
        events = [died(message, queue.name) for message in _first(found) if MOVED_FROM in message.system_attributes]
        self.record(events)
        # After the events. Not stored if a command has changed the queue meanwhile: then the next run records again.
        self.ports.store.queues.save(replace(queue, dead_letters=count), replacing=queue)
        return len(events)


def _first(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages until they have `MOST_BYTES`."""
    size = 0
    for message in messages:
        yield message
        size += size_bytes(message)
        if size >= MOST_BYTES:
            return
