"""The expiry of queues: deletes queues with `expires` that were not used for that time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.exchange.control.caller import Caller
from signalbox.exchange.control.deletion import DeletionService
from signalbox.exchange.model.control_ports import ChangedMeanwhile, ControlPorts
from signalbox.exchange.model.records import DeclaredQueue, latest

REASON = "nobody consumed from it for as long as it was to stay without"


def expired(queues: Iterable[DeclaredQueue], now: datetime, *, delay: timedelta) -> Sequence[DeclaredQueue]:
    """Return the queues that were neither declared nor consumed from for the time that `expires` sets.

    The times of use in `queues` may be late by `delay`, so that this much more time must have passed.
    """
    return [queue for queue in queues if queue.settings.expires is not None and _expires_at(queue) + delay <= now]


def _expires_at(queue: DeclaredQueue) -> datetime:
    used_at = max(queue.declared_at, queue.consumed_at or queue.declared_at)
    return used_at + (queue.settings.expires or timedelta.max)


@dataclass(frozen=True, slots=True)
class ExpiryService:
    """Deletes expired queues."""

    ports: ControlPorts

    def delete_expired(self) -> Sequence[DeclaredQueue]:
        """Delete the expired queues and return them. Raises `UnavailableError`."""
        now, delay = self.ports.now(), self.ports.config.metrics_delay
        late = expired(self.ports.store.queues.every(), now, delay=delay)
        # Each read of metrics costs a call, so they are read only for queues without another heartbeat.
        unused = expired([self._as_measured(queue, now, delay=delay) for queue in late], now, delay=delay)
        names = {queue.name for queue in unused}
        return [queue for queue in late if queue.name in names and self._is_deleted(queue)]

    def _as_measured(self, queue: DeclaredQueue, now: datetime, *, delay: timedelta) -> DeclaredQueue:
        since = now - delay - (queue.settings.expires or delay)
        received_at = self.ports.metrics.activity(self.ports.names.queue(queue.name), since=since).received_at
        return replace(queue, consumed_at=latest(queue.consumed_at, received_at))

    def _is_deleted(self, queue: DeclaredQueue) -> bool:
        try:
            DeletionService(self.ports, Caller(None)).delete(queue, reason=REASON)
        except ChangedMeanwhile:
            return False  # a consumer used it since it was read, so it has not expired
        return True
