"""A cache of the message TTLs of queues, read at a queue's first message and refreshed every minute."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.routing_ports import RoutingTable

KEPT_FOR = timedelta(seconds=60)  # the delay until a change of a queue's settings takes effect


@dataclass(slots=True)
class MessageTtls:
    """The last read message TTLs."""

    table: RoutingTable
    _read: dict[DeclaredName, timedelta] = field(default_factory=dict)
    _read_at: dict[DeclaredName, datetime] = field(default_factory=dict)

    def of(self, queues: Iterable[DeclaredName], *, now: datetime) -> Mapping[DeclaredName, timedelta]:
        """Return the TTLs of the queues that have one, and possibly of other queues."""
        never = now - KEPT_FOR
        stale = [queue for queue in dict.fromkeys(queues) if self._read_at.get(queue, never) <= never]
        if stale:
            found = self.table.message_ttls(stale)
            self._read = {queue: one for queue, one in self._read.items() if queue not in stale} | dict(found)
            self._read_at |= dict.fromkeys(stale, now)
        return self._read
