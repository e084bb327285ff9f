"""Orphan queues: temporary queues that outlive their client after a crash, found by name prefix and tags."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, QueueUrl, is_ours, queue_name

STRAY_AGE = timedelta(days=1)


class FoundQueues(Protocol):
    """Queues by name prefix."""

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; do nothing when it does not exist. Raises `EffectRefused` or `EffectFailed`."""

    def listed(self, prefix: str) -> Iterable[QueueUrl]:
        """Yield the URL of every queue whose name starts with `prefix`."""

    def modified_at(self, queue_url: QueueUrl) -> datetime | None:
        """Return the time of a queue's last modification; None if it does not exist. Raises `EffectFailed`."""

    def tags(self, queue_url: QueueUrl) -> Mapping[str, str]:
        """Return a queue's tags, none if it does not exist. Raises `EffectFailed`.

        Ask last: AWS allows few such calls a second, so they are paced.
        """


@dataclass(frozen=True, slots=True)
class OrphanQueues:
    """The orphan-queue sweeper; it ignores queues without the tags of this stage and capability."""

    queues: FoundQueues
    stage: str
    capability: str
    parallel_map: ParallelMap = serial_map

    def listed(self, *, prefix: str) -> list[QueueUrl]:
        """Return the URLs of the queues with `prefix`."""
        return list(self.queues.listed(prefix))

    def old(self, queue_urls: Sequence[QueueUrl], *, now: datetime) -> Iterator[QueueUrl]:
        """Yield the queues that were not modified for a day; each costs a call, several at a time."""
        modified = self.parallel_map(self.queues.modified_at, queue_urls)
        for url, modified_at in zip(queue_urls, modified, strict=True):
            if modified_at is not None and now - modified_at >= STRAY_AGE:
                yield url

    def ours(self, queue_urls: Iterable[QueueUrl]) -> list[QueueUrl]:
        """Return the queues that have the tags of this stage and capability."""
        return [
            url for url in queue_urls if is_ours(self.queues.tags(url), stage=self.stage, capability=self.capability)
        ]

    def delete(self, queue_urls: Sequence[QueueUrl]) -> Iterator[QueueName]:
        """Delete queues, several at a time, and yield their names."""
        list(self.parallel_map(self.queues.delete, queue_urls))
        yield from map(queue_name, queue_urls)
