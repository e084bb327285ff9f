"""The table `Leases`: temporary queues by the time from which they may be deleted."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key

from signalbox.aws.shared.dynamodb import Item, every_item, succeeds
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

    def due(self, capability: str, *, now: datetime) -> list[Lease]:
        """Return the overdue leases, the oldest first."""
        query = {
            "IndexName": BY_EXPIRY_INDEX,
            "KeyConditionExpression": Key("capability").eq(capability) & Key("due_at").lte(int(now.timestamp())),
        }
        return [_lease(item) for item in every_item(self.table.query, query)]

    def end(self, lease: Lease) -> None:
        """Delete a lease, unless it was extended since it was read."""
        is_same = Attr("due_at").eq(int(lease.due_at.timestamp()))
        succeeds(lambda: self.table.delete_item(Key={"queue_name": lease.queue_name}, ConditionExpression=is_same))

    def is_leased(self, queue_name: str) -> bool:
        """Return whether a queue has a lease."""
        return "Item" in self.table.get_item(Key={"queue_name": queue_name}, ConsistentRead=True)


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
