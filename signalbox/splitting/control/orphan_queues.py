"""The orphan-queue sweeper of splitting: deletes unknown temporary queues."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signalbox.clock import Clock
from signalbox.control.orphan_queues import FoundQueues, OrphanQueues
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, QueueUrl, queue_name
from signalbox.splitting.control.ports import temporary_names
from signalbox.splitting.model.events import CAPABILITY
from signalbox.splitting.model.records import UnreadableRecord
from signalbox.splitting.ports import SplitQueues, Splits, UnreadableSplit
from signalbox.task_time import TaskTime


@dataclass(frozen=True, slots=True)
class OrphanQueueSweeper:
    """Deletes orphan queues that have this stage's tags."""

    splits: Splits
    temporary_queues: FoundQueues
    split_queues: SplitQueues
    clock: Clock
    stage: str
    parallel_map: ParallelMap = serial_map

    def delete_orphans(self, time: TaskTime, *, prefix: str) -> Iterator[QueueName]:
        """Delete empty temporary queues that no split knows, and yield their names.

        Raises `UnreadableRecord`, because the queues of an unreadable split are unknown.
        """
        listed = self._found.listed(prefix=prefix)
        # Splits are read after the queues were listed: a record names its queues before they are created.
        known = self.known()
        for part in time.parts(url for url in listed if queue_name(url) not in known):
            yield from self._deleted(part)

    def _deleted(self, unknown: Sequence[QueueUrl]) -> Iterator[QueueName]:
        strays = list(self._found.old(unknown, now=self.clock.now()))
        counters = self.split_queues.observe(map(queue_name, strays), now=self.clock.now())
        empty = {name for name, (_, sample) in counters.items() if sample.is_zero}
        yield from self._found.delete(self._found.ours(url for url in strays if queue_name(url) in empty))

    @property
    def _found(self) -> OrphanQueues:
        return OrphanQueues(self.temporary_queues, self.stage, CAPABILITY, self.parallel_map)

    def known(self) -> set[QueueName]:
        """Return the names of the temporary queues of all splits. Raises `UnreadableRecord`."""
        known: set[QueueName] = set()
        for found in self.splits.every():
            if isinstance(found, UnreadableSplit):
                raise UnreadableRecord(
                    f"no orphan queues are deleted, because the split of {found.target} cannot be read: {found.reason}"
                )
            known.update(temporary_names(found.split))
        return known
