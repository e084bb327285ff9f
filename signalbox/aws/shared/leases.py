"""The table `Leases`: temporary queues by the time from which they may be deleted."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key

from signalbox.aws.shared.dynamodb import Item, every_item, every_key, succeeds
from signalbox.queues import Lease, QueueName, QueueUrl

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

BY_EXPIRY_INDEX = "by_expiry"
FORGOTTEN_AFTER = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class DynamoLeases:
    """`Leases` in DynamoDB. A lease expires a week after its end; the orphan sweep then deletes its queue."""

    table: "Table"

    def put(self, lease: Lease) -> None:
        """Store or extend a lease."""
        self.table.put_item(Item=_item(lease))

    def due(self, capability: str, *, now: datetime) -> Iterator[Lease]:
        """Yield the overdue leases, the oldest first; each page is read when it is needed."""
        query = {
            "IndexName": BY_EXPIRY_INDEX,
            "KeyConditionExpression": Key("capability").eq(capability) & Key("due_at").lte(int(now.timestamp())),
        }
        return map(_lease, every_item(self.table.query, query))

    def end(self, lease: Lease) -> None:
        """Delete a lease, unless it was extended since it was read."""
        is_same = Attr("due_at").eq(int(lease.due_at.timestamp()))
        succeeds(lambda: self.table.delete_item(Key={"queue_name": lease.queue_name}, ConditionExpression=is_same))

    def leased(self, queue_names: Sequence[QueueName]) -> AbstractSet[QueueName]:
        """Return those of the queues that have a lease, with one call for each hundred. Raises `ItemBusy`."""
        keys = [{"queue_name": name} for name in queue_names]
        return {QueueName(item["queue_name"]) for item in every_key(self.table, keys)}


def _item(lease: Lease) -> Item:
    return {
        "queue_name": lease.queue_name,
        "queue_url": lease.queue_url,
        "capability": lease.capability,
        "due_at": int(lease.due_at.timestamp()),
        "expires_at": int((lease.due_at + FORGOTTEN_AFTER).timestamp()),
    }


def _lease(item: Item) -> Lease:
    return Lease(
        queue_name=QueueName(item["queue_name"]),
        queue_url=QueueUrl(item["queue_url"]),
        capability=item["capability"],
        due_at=datetime.fromtimestamp(int(item["due_at"]), UTC),
    )
