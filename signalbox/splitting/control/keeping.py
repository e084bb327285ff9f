"""The settings of kept queues applied to splits: whether the function `split` keeps what it forwards."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from signalbox.clock import Clock
from signalbox.errors import RejectedError
from signalbox.kept.sweeper import KeptSweeper, SweepResult
from signalbox.queues import QueueName
from signalbox.splitting.control.commands import Keep
from signalbox.splitting.control.ports import KeptStore
from signalbox.splitting.control.record_updates import changed
from signalbox.splitting.model.split import with_kept
from signalbox.splitting.ports import Splits, StoredSplit

# The client that waits for the reply asks again while the deletion is incomplete.
DELETING_FOR = timedelta(seconds=10)


class NothingIsKept(RejectedError):
    """Raised on a stage that cannot keep messages."""


@dataclass(frozen=True, slots=True)
class KeepService:
    """Applies the stored settings of kept queues, and changes none: their writers decide what is kept."""

    splits: Splits
    kept: KeptStore | None
    """None where no messages can be kept."""
    clock: Clock

    def keep(self, command: Keep) -> dict[str, object]:
        """Apply the setting of a queue to its split; without one, delete what is left.

        Result: {queue, kept_seconds or null, target or null, deleted, complete}.
        """
        if self.kept is None:
            raise NothingIsKept("this stage cannot keep messages")
        stored = self.splits.of_queue(command.queue)
        if stored is not None:
            self.apply(stored)
        setting = self.kept.settings.find(command.queue)
        keep_for = setting.keep_for if setting else None
        swept = SweepResult(0, is_complete=True)
        if setting is not None and keep_for is None:
            sweeper = KeptSweeper(self.kept.settings, self.kept.objects, self.clock)
            swept = sweeper.sweep_queue(setting, until=self.clock.now() + DELETING_FOR)
        return {
            "queue": command.queue,
            "kept_seconds": None if keep_for is None else int(keep_for.total_seconds()),
            "target": str(stored.split.target) if stored else None,
            "deleted": swept.deleted,
            "complete": swept.is_complete,
        }

    def apply(self, stored: StoredSplit) -> StoredSplit:
        """Mark the queues of a split as their settings say, and return the record."""
        newest: StoredSplit | None = stored
        for queue in stored.split.queues if self.kept else ():
            is_kept = self._is_kept(queue.original)
            if is_kept != queue.is_kept:
                mark = partial(with_kept, original=queue.original, is_kept=is_kept)
                newest = changed(self.splits, stored.split.target, mark)
        return newest or stored

    def _is_kept(self, original: QueueName) -> bool:
        setting = self.kept.settings.find(original) if self.kept else None
        return setting is not None and setting.keep_for is not None and setting.declared is None
