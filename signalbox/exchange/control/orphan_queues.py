"""The sweeper of the exchange's orphan queues: SQS queues without a record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signalbox.control.orphan_queues import FoundQueues, Strays
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.events import CAPABILITY
from signalbox.exchange.model.names import dead_letter_name
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, queue_name

FAMILIES = ("x", "q_")  # prefixes of the names of exchanges and of queues


@dataclass(frozen=True, slots=True)
class OrphanQueueSweeper:
    """Deletes orphan queues. It never deletes a queue without this stage's tags."""

    ports: ControlPorts
    queues: FoundQueues
    parallel_map: ParallelMap = serial_map

    def delete_strays(self) -> Iterator[QueueName]:
        """Delete the empty queues that belong to no record, and yield their names.

        Queues with messages are kept, and so are the dead letters of deleted resources until they are consumed or
        expire.
        """
        listed = [url for family in FAMILIES for url in self._strays.listed(prefix=self.ports.names.prefix + family)]
        # Read after the queues were listed, so that a queue that was declared since then is kept.
        known = set(self._known())
        unknown = [url for url in listed if queue_name(url) not in known]
        strays = list(self._strays.old(unknown, now=self.ports.now()))
        sizes = self.ports.sqs.sizes(map(queue_name, strays))
        empty = {name for name, size in sizes.items() if not size.total}
        ours = self._strays.ours(url for url in strays if queue_name(url) in empty)
        for url in ours:
            if self.ports.names.exchange_of(queue_name(url)):
                self.ports.mappings.disconnect(queue_name(url))
        yield from self._strays.delete(ours)

    @property
    def _strays(self) -> Strays:
        return Strays(self.queues, self.ports.names.stage, CAPABILITY, self.parallel_map)

    def _known(self) -> Iterator[QueueName]:
        records: Sequence[str] = [one.name for one in self.ports.store.exchanges.every()]
        for name in [*records, *(one.name for one in self.ports.store.queues.every())]:
            queue = self.ports.names.queue(name)
            yield from (queue, dead_letter_name(queue))
