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
        # A look costs calls, so only queues without another heartbeat are looked at.
        return [queue for queue in late if self._is_unused(queue, now, delay=delay) and self._is_deleted(queue)]

    def _is_unused(self, queue: DeclaredQueue, now: datetime, *, delay: timedelta) -> bool:
        name = self.ports.names.queue(queue.name)
        # This read also makes the queue active, so that SQS begins to publish its metrics.
        size = self.ports.sqs.sizes([name]).get(name)
        if size is not None and size.in_flight:
            return False
        activity = self.ports.metrics.activity(name, since=now - delay - (queue.settings.expires or delay))
        if size is not None and not activity.is_measured:
            return False
        measured = replace(queue, consumed_at=latest(queue.consumed_at, activity.received_at))
        return bool(expired([measured], now, delay=delay))

    def _is_deleted(self, queue: DeclaredQueue) -> bool:
        try:
            DeletionService(self.ports, Caller(None)).delete(queue, reason=REASON)
        except ChangedMeanwhile:
            return False  # a consumer used it since it was read, so it has not expired
        return True
