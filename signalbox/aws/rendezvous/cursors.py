"""The places of the searches for ended leases and for orphaned client queues, in the table `Leases`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import Delete, Item, Put

if TYPE_CHECKING:
    from signalbox.clock import Clock

# No queue has such a name. The table `Rendezvous` has offers, to which the function `sweep` needs no access.
STRAYS, LEASES = "sweep#strays", "sweep#leases"
# A search that ended with an error is repeated from its start after this time.
KEPT_FOR = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class DynamoCursor:
    """`Cursor` in the table `Leases`, under `name`."""

    table: DynamoTable
    clock: "Clock"
    name: str = STRAYS

    def position(self) -> int | None:
        """Return the place of the current search, or None if there is no search."""
        item = self.table.get(self._key())
        return int(item["position"]) if item else None

    def save(self, position: int) -> None:
        """Store the place of the search."""
        self.table.write(Put(self._key() | {"position": position} | ttl(self.clock.now() + KEPT_FOR)))

    def clear(self) -> None:
        """End the search."""
        self.table.write(Delete(self._key()))

    def _key(self) -> Item:
        return {"queue_name": self.name}
