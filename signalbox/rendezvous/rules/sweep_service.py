"""What is cleaned up: client queues at the end of their lease, and strays that have none."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.clock import Clock
from signalbox.history.event import HistoryEvent
from signalbox.queues import StrayQueue, is_ours
from signalbox.rendezvous.ports import Leases, TemporaryQueues
from signalbox.rendezvous.reporting import events


@dataclass(frozen=True, slots=True)
class SweepDesk:
    """Deletes client queues; a queue that does not carry this stage's tags is never touched."""

    leases: Leases
    queues: TemporaryQueues
    clock: Clock
    stage: str

    def end_leases(self) -> Iterator[HistoryEvent]:
        """Delete the queues whose lease is over, one call for each, and yield what was done."""
        for lease in self.leases.due(events.CAPABILITY, now=self.clock.now()):
            self.queues.delete(lease.queue_url)
            self.leases.end(lease)
            yield events.queue(lease.queue_name, "deleted", at=self.clock.now())

    def delete_strays(self, *, prefix: str, age: timedelta) -> Iterator[HistoryEvent]:
        """Delete queues of ours that a crash left without a lease, and yield what was done."""
        now = self.clock.now()
        for queue in self.queues.with_prefix(prefix):
            if is_stray(queue, stage=self.stage, age=age, now=now) and not self.leases.is_leased(queue.queue_name):
                self.queues.delete(queue.queue_url)
                yield events.queue(queue.queue_name, "stray_deleted", at=self.clock.now())


def is_stray(queue: StrayQueue, *, stage: str, age: timedelta, now: datetime) -> bool:
    """Say whether a queue found by its prefix is ours and has not been modified for `age`."""
    return is_ours(queue.tags, stage=stage, capability=events.CAPABILITY) and now - queue.modified_at >= age
