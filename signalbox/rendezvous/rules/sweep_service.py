"""The sweep of client queues: it deletes queues whose lease has ended, and orphans without a lease."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.history.event import HistoryEvent
from signalbox.queues import StrayQueue, is_ours
from signalbox.rendezvous.reporting import events

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import Leases, TemporaryQueues


@dataclass(frozen=True, slots=True)
class SweepService:
    """Deletes client queues; it never deletes a queue without the tags of this stage."""

    leases: "Leases"
    queues: "TemporaryQueues"
    clock: "Clock"
    stage: str

    def end_leases(self) -> Iterator[HistoryEvent]:
        """Delete the queues whose lease has ended, one call each, and yield an event for each."""
        for lease in self.leases.due(events.CAPABILITY, now=self.clock.now()):
            self.queues.delete(lease.queue_url)
            self.leases.end(lease)
            yield events.queue(lease.queue_name, "deleted", at=self.clock.now())

    def delete_strays(self, *, prefix: str, age: timedelta) -> Iterator[HistoryEvent]:
        """Delete this stage's queues that a crash left without a lease, and yield an event for each."""
        now = self.clock.now()
        for queue in self.queues.with_prefix(prefix):
            if is_stray(queue, stage=self.stage, age=age, now=now) and not self.leases.is_leased(queue.queue_name):
                self.queues.delete(queue.queue_url)
                yield events.queue(queue.queue_name, "stray_deleted", at=self.clock.now())


def is_stray(queue: StrayQueue, *, stage: str, age: timedelta, now: datetime) -> bool:
    """Return whether a queue belongs to this stage's rendezvous and was not modified for `age`."""
    return is_ours(queue.tags, stage=stage, capability=events.CAPABILITY) and now - queue.modified_at >= age
