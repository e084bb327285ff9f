"""Deleting queues that a crash left behind: temporary ones that no split knows, and reply queues of clients."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.queues import EXPIRES_TAG, QueueName, QueueUrl, StrayQueue, is_ours
from signalbox.splitting.control_ports import Clock, temporary_names
from signalbox.splitting.events import CAPABILITY
from signalbox.splitting.ports import SplitQueues, Splits, UnreadableSplit
from signalbox.splitting.records import UnreadableRecord

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
class SplitSweep:
    """Deletes stray queues; one that does not carry this stage's tags is never touched."""

    splits: Splits
    temporary_queues: FoundQueues
    split_queues: SplitQueues
    clock: Clock
    stage: str

    def delete_strays(self, *, prefix: str) -> Iterator[QueueName]:
        """Delete temporary queues that no split knows, and yield their names; one that holds messages is kept.

        Raises `UnreadableRecord`: whose queues are not known may have any.
        """
        old = list(self._old(prefix))
        # Read after the queues were listed: a record names its queues before they are made.
        known = self._known()
        strays = [queue for queue in old if queue.queue_name not in known]
        counters = self.split_queues.observe([queue.queue_name for queue in strays], now=self.clock.now())
        empty = {name for name, (_, sample) in counters.items() if sample.is_zero}
        yield from self._delete(queue for queue in strays if queue.queue_name in empty)

    def delete_reply_queues(self, *, prefix: str) -> Iterator[QueueName]:
        """Delete reply queues whose time is over, and yield their names."""
        now = self.clock.now()
        yield from self._delete([queue for queue in self._old(prefix) if is_over(queue, now=now)])

    def _old(self, prefix: str) -> Iterator[StrayQueue]:
        now = self.clock.now()
        for queue in self.temporary_queues.with_prefix(prefix):
            is_old = now - queue.modified_at >= STRAY_AGE
            if is_old and is_ours(queue.tags, stage=self.stage, capability=CAPABILITY):
                yield queue

    def _known(self) -> set[QueueName]:
        known: set[QueueName] = set()
        for found in self.splits.every():
            if isinstance(found, UnreadableSplit):
                raise UnreadableRecord(
                    f"no strays are deleted, for the split of {found.target} is not known: {found.reason}"
                )
            known.update(temporary_names(found.split))
        return known

    def _delete(self, strays: Iterable[StrayQueue]) -> Iterator[QueueName]:
        for queue in strays:
            self.temporary_queues.delete(queue.queue_url)
            yield queue.queue_name


def is_over(queue: StrayQueue, *, now: datetime) -> bool:
    """Say whether the moment has come that a reply queue names; one that names none is nobody's."""
    try:
        return now >= datetime.fromisoformat(queue.tags.get(EXPIRES_TAG, ""))
    except (ValueError, TypeError):  # not a moment, or one without a zone
        return True
