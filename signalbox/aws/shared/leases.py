"""The table `Leases`: temporary queues by the time from which they may be deleted."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import Delete, Item, Put, attr
from signalbox.queues import Lease, QueueName, QueueUrl

BY_EXPIRY_INDEX = "by_expiry"
FORGOTTEN_AFTER = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class DynamoLeases:
    """`Leases` in DynamoDB. A lease expires a week after its end; the orphan sweep deletes its queue, too."""

    table: DynamoTable

    def put(self, lease: Lease) -> None:
        """Store or extend a lease."""
        self.table.write(Put(_item(lease)))

    def due(self, capability: str, *, now: datetime) -> Iterator[Lease]:
        """Yield the overdue leases, the oldest first; each page is read when it is needed."""
        is_due = attr("capability").eq(capability) & attr("due_at").lte(int(now.timestamp()))
        return map(_lease, self.table.query(is_due, index=BY_EXPIRY_INDEX))

    def end(self, lease: Lease) -> None:
        """Delete a lease, unless it was extended since it was read."""
        is_same = attr("due_at").eq(int(lease.due_at.timestamp()))
        self.table.write(Delete({"queue_name": lease.queue_name}, is_same))


def _item(lease: Lease) -> Item:
    return {
        "queue_name": lease.queue_name,
        "queue_url": lease.queue_url,
        "capability": lease.capability,
        "due_at": int(lease.due_at.timestamp()),
    } | ttl(lease.due_at + FORGOTTEN_AFTER)


def _lease(item: Item) -> Lease:
    return Lease(
        queue_name=QueueName(item["queue_name"]),
        queue_url=QueueUrl(item["queue_url"]),
        capability=item["capability"],
        due_at=datetime.fromtimestamp(int(item["due_at"]), UTC),
    )
