"""The deletion of kept messages on time, and of all that a removed setting leaves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Protocol

from signalbox.clock import Clock
from signalbox.errors import EffectFailed
from signalbox.kept.objects import KeptObject, StoredVersion, is_kept
from signalbox.kept.settings import KeepSetting, KeepSettings
from signalbox.queues import QueueName
from signalbox.task_time import TaskTime

# A function instance may keep messages by a setting that it read before the removal: a minute, and its own time-out.
REMOVED_FOR = timedelta(hours=1)


class KeptObjects(Protocol):
    """The stored objects of kept messages."""

    def versions(self, queue: QueueName) -> Iterator[Sequence[StoredVersion]]:
        """Yield pages of the versions of a queue's objects, oldest object first. Raises `EffectFailed`."""

    def delete(self, versions: Sequence[StoredVersion]) -> None:
        """Delete versions of objects for good. Raises `EffectFailed`."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The number of deleted versions; `is_complete` is false if the time was over before."""

    deleted: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class KeptSweeper:
    """Deletes the objects whose time is over by the current setting of their queue. It reads none of them."""

    settings: KeepSettings
    objects: KeptObjects
    clock: Clock

    def sweep(self, time: TaskTime) -> SweepResult:
        """Sweep all queues, each for its share of the time, and those that need more until the time is over.

        The next sweep continues. A failure at one queue does not keep the messages of the others. Raises `EffectFailed`
        after the last one.
        """
        deleted, left = 0, {one.queue: one for one in self.settings.every()}
        problems: list[str] = []
        while left and time.now() < time.until:
            for setting, until in time.shares(left.values()):
                try:
                    found = self.sweep_queue(setting, until=until)
                except EffectFailed as error:
                    problems.append(str(error))
                else:
                    deleted += found.deleted
                    if not found.is_complete:
                        continue
                del left[setting.queue]
        if problems:
            raise EffectFailed("; ".join(problems))
        return SweepResult(deleted, is_complete=not left)

    def sweep_queue(self, setting: KeepSetting, *, until: datetime) -> SweepResult:
        """Delete the expired messages of a queue; forget a removed setting when nothing is left to be deleted."""
        deleted, oldest = 0, setting.oldest(self.clock.now())
        for page in self.objects.versions(setting.queue):
            # Objects that others put there have no time; the bucket's lifecycle rule deletes them.
            ours = [one for one in page if is_kept(one.key)]
            expired = list(takewhile(lambda one: KeptObject.parse(one.key).kept_at <= oldest, ours))
            if expired:
                self.objects.delete(expired)
                deleted += len(expired)
            if len(expired) < len(ours):
                break  # the rest is younger: keys are in the order of time
            if self.clock.now() >= until:
                return SweepResult(deleted, is_complete=False)
        if setting.keep_for is None and not deleted and self.clock.now() - setting.set_at > REMOVED_FOR:
            self.settings.forget(setting)
        return SweepResult(deleted, is_complete=True)
