"""In-memory ports of `signalbox.kept`; the suite in tests/adapters/kept checks them and the adapters alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from signalbox.errors import EffectFailed
from signalbox.kept.objects import KeptBatch, NotKept, StoredVersion, queue_prefix
from signalbox.kept.settings import KeepSetting
from signalbox.queues import QueueName


@dataclass
class MemoryKeepSettings:
    settings: dict[QueueName, KeepSetting] = field(default_factory=dict)

    def find(self, queue: QueueName) -> KeepSetting | None:
        return self.settings.get(queue)

    def every(self) -> Sequence[KeepSetting]:
        return [self.settings[queue] for queue in sorted(self.settings)]

    def put(self, setting: KeepSetting) -> None:
        self.settings[setting.queue] = setting

    def forget(self, setting: KeepSetting) -> None:
        if self.settings.get(setting.queue) == setting:
            del self.settings[setting.queue]


@dataclass
class MemoryKeptMessages:
    """The texts of kept batches by key.

    Writes fail while `is_failing`, reads of the keys in `unreadable` fail, and lists of the queues in `unlisted`.
    """

    texts: dict[str, str] = field(default_factory=dict)
    is_failing: bool = False
    unreadable: set[str] = field(default_factory=set)
    unlisted: set[QueueName] = field(default_factory=set)
    page: int = 2

    def put(self, batch: KeptBatch) -> None:
        if self.is_failing:
            raise NotKept(f"kept messages of queue {batch.stored_as.queue!r}")
        self.texts[batch.stored_as.key] = batch.text

    def keys(self, queue: QueueName, *, after: str) -> Iterator[str]:
        return iter([key for key in self._of(queue) if key > after])

    def read(self, key: str) -> str | None:
        if key in self.unreadable:
            raise EffectFailed(key)
        return self.texts.get(key)

    def versions(self, queue: QueueName) -> Iterator[Sequence[StoredVersion]]:
        if queue in self.unlisted:
            raise EffectFailed(f"kept messages of queue {queue!r}")
        keys = self._of(queue)
        for start in range(0, len(keys), self.page):
            yield [StoredVersion(key, "null") for key in keys[start : start + self.page]]

    def delete(self, versions: Sequence[StoredVersion]) -> None:
        for one in versions:
            self.texts.pop(one.key, None)

    def _of(self, queue: QueueName) -> list[str]:
        return sorted(key for key in self.texts if key.startswith(queue_prefix(queue)))
