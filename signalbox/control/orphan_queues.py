"""Orphan queues: temporary queues that outlive their client after a crash, found by name prefix and tags."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, QueueUrl, StrayQueue, is_ours

STRAY_AGE = timedelta(days=1)


class FoundQueues(Protocol):
    """Queues by name prefix."""

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; do nothing when it does not exist."""
        ...

    def listed(self, prefix: str) -> Iterable[QueueUrl]:
        """Yield the URL of every queue whose name starts with `prefix`."""
        ...

    def described(self, queue_url: QueueUrl) -> StrayQueue | None:
        """Return a queue's tags and time of last modification; None if it does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class Strays:
    """The orphan-queue sweeper; it ignores queues without the tags of this stage and capability."""

    queues: FoundQueues
    stage: str
    capability: str
    parallel_map: ParallelMap = serial_map

    def listed(self, *, prefix: str) -> list[QueueUrl]:
        """Return the URLs of the queues with `prefix`."""
        return list(self.queues.listed(prefix))

    def old(self, queue_urls: Iterable[QueueUrl], *, now: datetime) -> Iterator[StrayQueue]:
        """Yield those of the queues that were not modified for a day; each costs two calls, several at a time."""
        for queue in self.parallel_map(self.queues.described, queue_urls):
            is_old = queue is not None and now - queue.modified_at >= STRAY_AGE
            if queue and is_old and is_ours(queue.tags, stage=self.stage, capability=self.capability):
                yield queue

    def delete(self, strays: Iterable[StrayQueue]) -> Iterator[QueueName]:
        """Delete queues, several at a time, and yield their names."""
        found = list(strays)
        list(self.parallel_map(self.queues.delete, [queue.queue_url for queue in found]))
        yield from (queue.queue_name for queue in found)
