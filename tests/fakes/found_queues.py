"""`FoundQueues` in memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.errors import EffectRefused
from signalbox.queues import QueueUrl, queue_name


@dataclass(frozen=True)
class MemoryFoundQueue:
    """A queue with its tags and its time of modification."""

    tags: Mapping[str, str]
    modified_at: datetime


@dataclass
class MemoryFoundQueues:
    """Queues by URL; deletions of those in `refused` fail."""

    queues: dict[QueueUrl, MemoryFoundQueue] = field(default_factory=dict)
    deleted: list[QueueUrl] = field(default_factory=list)
    refused: set[QueueUrl] = field(default_factory=set)
    looked_at: list[QueueUrl] = field(default_factory=list)
    asked_for_tags: list[QueueUrl] = field(default_factory=list)

    def delete(self, queue_url: QueueUrl) -> None:
        if queue_url in self.refused:
            raise EffectRefused(f"{queue_name(queue_url)} is refused")
        self.queues.pop(queue_url, None)
        self.deleted.append(queue_url)

    def listed(self, prefix: str) -> Iterator[QueueUrl]:
        yield from (url for url in list(self.queues) if queue_name(url).startswith(prefix))

    def modified_at(self, queue_url: QueueUrl) -> datetime | None:
        self.looked_at.append(queue_url)
        found = self.queues.get(queue_url)
        return found.modified_at if found else None

    def tags(self, queue_url: QueueUrl) -> Mapping[str, str]:
        self.asked_for_tags.append(queue_url)
        found = self.queues.get(queue_url)
        return found.tags if found else {}
