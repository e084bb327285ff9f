"""The places of the searches for ended leases and for orphaned client queues, in the table `Leases`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

    from signalbox.clock import Clock

# No queue has such a name. The table `Rendezvous` has offers, to which the function `sweep` needs no access.
STRAYS, LEASES = "sweep#strays", "sweep#leases"
# A search that ended with an error is repeated from its start after this time.
KEPT_FOR = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class DynamoCursor:
    """`Cursor` in the table `Leases`, under `name`."""

    table: "Table"
    clock: "Clock"
    name: str = STRAYS

    def position(self) -> int | None:
        """Return the place of the current search, or None if there is no search."""
        item = self.table.get_item(Key=self._key(), ConsistentRead=True).get("Item")
        return int(str(item["position"])) if item else None

    def save(self, position: int) -> None:
        """Store the place of the search."""
        self.table.put_item(
            Item=self._key() | {"position": position, "expires_at": _seconds(self.clock.now() + KEPT_FOR)}
        )

    def clear(self) -> None:
        """End the search."""
        self.table.delete_item(Key=self._key())

    def _key(self) -> dict[str, str]:
        return {"queue_name": self.name}


def _seconds(moment: datetime) -> int:
    return round(moment.timestamp())
