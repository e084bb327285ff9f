"""Orphan queues: temporary queues that outlive their client after a crash, found by name prefix and tags."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.queues import EXPIRES_TAG, QueueName, QueueUrl, StrayQueue, is_ours

STRAY_AGE = timedelta(days=1)


class FoundQueues(Protocol):
    """Queues by name prefix."""

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; do nothing when it does not exist."""
        ...

    def with_prefix(self, prefix: str) -> Iterable[StrayQueue]:
        """Yield every queue whose name starts with `prefix`, with its tags and time of last modification."""
        ...


@dataclass(frozen=True, slots=True)
class Strays:
    """The orphan-queue sweeper; it ignores queues without the tags of this stage and capability."""

    queues: FoundQueues
    stage: str
    capability: str

    def old(self, *, prefix: str, now: datetime) -> Iterator[StrayQueue]:
        """Yield the queues with `prefix` that were not modified for a day."""
        for queue in self.queues.with_prefix(prefix):
            is_old = now - queue.modified_at >= STRAY_AGE
            if is_old and is_ours(queue.tags, stage=self.stage, capability=self.capability):
                yield queue

    def delete(self, strays: Iterable[StrayQueue]) -> Iterator[QueueName]:
        """Delete queues and yield their names."""
        for queue in strays:
            self.queues.delete(queue.queue_url)
            yield queue.queue_name

    def delete_reply_queues(self, *, prefix: str, now: datetime) -> Iterator[QueueName]:
        """Delete expired reply queues and yield their names."""
        yield from self.delete([queue for queue in self.old(prefix=prefix, now=now) if is_over(queue, now=now)])


def is_over(queue: StrayQueue, *, now: datetime) -> bool:
    """Return whether a reply queue's expiry tag is past; a queue without a valid tag is expired."""
    try:
        return now >= datetime.fromisoformat(queue.tags.get(EXPIRES_TAG, ""))
    except (ValueError, TypeError):  # not a time, or a time without a zone
        return True
