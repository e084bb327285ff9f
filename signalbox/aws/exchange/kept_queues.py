"""The mark in a declared queue's record by which the router keeps its messages."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from signalbox.aws.exchange.items import KEEP_SECONDS, record_key
from signalbox.aws.shared.dynamodb import updated
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import ResourceKind, ResourceRef

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


@dataclass(frozen=True, slots=True)
class DynamoKeptQueues:
    """The records of declared queues in the table `Exchanges`."""

    table: "Table"

    def mark(self, queue: DeclaredName, keep_for: timedelta | None) -> bool:
        """Set or remove the mark; return whether the queue exists.

        The version grows as with every change of the record, so that no concurrent change is lost.
        """
        write: dict[str, Any] = {
            "Key": record_key(ResourceRef(ResourceKind.QUEUE, queue)),
            "ConditionExpression": "attribute_exists(pk)",
            "UpdateExpression": f"REMOVE {KEEP_SECONDS} ADD version :one",
            "ExpressionAttributeValues": {":one": 1},
        }
        if keep_for is not None:
            write["UpdateExpression"] = f"SET {KEEP_SECONDS} = :seconds ADD version :one"
            write["ExpressionAttributeValues"] = {":one": 1, ":seconds": int(keep_for.total_seconds())}
        return updated(self.table, write) is not None

    def is_marked(self, queue: DeclaredName) -> bool:
        """Return whether a queue exists and is marked: a queue that is declared again is not."""
        found = self.table.get_item(Key=record_key(ResourceRef(ResourceKind.QUEUE, queue)), ConsistentRead=True)
        return KEEP_SECONDS in found.get("Item", {})
