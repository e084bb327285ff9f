"""A cache of the settings of queues for their copies, read at a queue's first message and refreshed every minute."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import GroupBy
from signalbox.exchange.routing.ports import CopySettings, RoutingTable
from signalbox.sarracenia.rights.names import UserName, queue_user

KEPT_FOR = timedelta(seconds=60)  # the delay until a change of a queue's settings takes effect


@dataclass(slots=True)
class CopySettingsCache:
    """The last read settings."""

    table: RoutingTable
    _read: dict[DeclaredName, CopySettings] = field(default_factory=dict)
    _read_at: dict[DeclaredName, datetime] = field(default_factory=dict)

    def message_ttls(self, queues: Iterable[DeclaredName], *, now: datetime) -> Mapping[DeclaredName, timedelta]:
        """Return the TTL of each queue that has one."""
        wanted = tuple(queues)
        self._refresh(wanted, now)
        found = ((queue, self._read[queue].message_ttl) for queue in wanted if queue in self._read)
        return {queue: ttl for queue, ttl in found if ttl is not None}

    def groups(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, GroupBy]:
        """Return the message groups of queues whose TTLs were read."""
        return {queue: self._read[queue].group_by for queue in queues if queue in self._read}

    def declarers(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, UserName | None]:
        """Return the users who declared queues whose TTLs were read, None for the administrators."""
        return {queue: self._read[queue].owner for queue in queues if queue in self._read}

    def owners(self, queues: Iterable[DeclaredName], *, now: datetime) -> Mapping[DeclaredName, Collection[UserName]]:
        """Return the users of each queue: the one in its name, and the one who declared it."""
        wanted = tuple(queues)
        self._refresh(wanted, now)
        declared = self.declarers(wanted)
        return {queue: {queue_user(queue), declared.get(queue) or queue_user(queue)} for queue in wanted}

    def is_kept(self, queue: DeclaredName) -> bool:
        """Return whether the copies of a queue whose TTL was read are kept."""
        return queue in self._read and self._read[queue].is_kept

    def _refresh(self, queues: Iterable[DeclaredName], now: datetime) -> None:
        never = now - KEPT_FOR
        stale = [queue for queue in dict.fromkeys(queues) if self._read_at.get(queue, never) <= never]
        if stale:
            found = self.table.copy_settings(stale)
            self._read = {queue: one for queue, one in self._read.items() if queue not in stale} | dict(found)
            self._read_at |= dict.fromkeys(stale, now)
