"""Queues that a crash left behind: found by how their names begin, told by their tags, and old."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.queues import EXPIRES_TAG, QueueName, QueueUrl, StrayQueue, is_ours

STRAY_AGE = timedelta(days=1)


class FoundQueues(Protocol):
    """Queues by their names' prefix."""

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; one that is gone already is fine."""
        ...

    def with_prefix(self, prefix: str) -> Iterable[StrayQueue]:
        """Yield every queue whose name starts with `prefix`, with its tags and last modification."""
        ...


@dataclass(frozen=True, slots=True)
class Strays:
    """Finds and deletes queues; one without the tags of this stage and capability is never touched."""

    queues: FoundQueues
    stage: str
    capability: str

    def old(self, *, prefix: str, now: datetime) -> Iterator[StrayQueue]:
        """Yield those that nobody changed for a day."""
        for queue in self.queues.with_prefix(prefix):
            is_old = now - queue.modified_at >= STRAY_AGE
            if is_old and is_ours(queue.tags, stage=self.stage, capability=self.capability):
                yield queue

    def delete(self, strays: Iterable[StrayQueue]) -> Iterator[QueueName]:
        """Delete queues, and yield their names."""
        for queue in strays:
            self.queues.delete(queue.queue_url)
            yield queue.queue_name

    def delete_reply_queues(self, *, prefix: str, now: datetime) -> Iterator[QueueName]:
        """Delete reply queues whose time is over, and yield their names."""
        yield from self.delete([queue for queue in self.old(prefix=prefix, now=now) if is_over(queue, now=now)])


def is_over(queue: StrayQueue, *, now: datetime) -> bool:
    """Say whether the moment has come that a reply queue names; one that names none is nobody's."""
    try:
        return now >= datetime.fromisoformat(queue.tags.get(EXPIRES_TAG, ""))
    except (ValueError, TypeError):  # not a moment, or one without a zone
        return True
