"""The DynamoDB store of counters, as the control plane reads it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Key

from signalbox.aws.exchange.items import MINUTE, minute_key, minute_of, partition
from signalbox.aws.shared.dynamodb import every_item
from signalbox.exchange.model.records import MinuteCounts, ResourceRef

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

AFTER_ALL_DIGITS = MINUTE + ":"


@dataclass(frozen=True, slots=True)
class DynamoCounters:
    """`Counters` over the table `Exchanges`, to which the router adds."""

    table: "Table"

    def since(self, resource: ResourceRef, moment: datetime) -> Sequence[MinuteCounts]:
        """Return the counters from the minute of `moment` on, oldest first, without empty minutes."""
        minutes = Key("sk").between(minute_key(moment), AFTER_ALL_DIGITS)
        query = {"TableName": self.table.name, "KeyConditionExpression": Key("pk").eq(partition(resource)) & minutes}
        # The client is thread-safe, the table resource is not.
        return [minute_of(item) for item in every_item(self.table.meta.client.query, query)]
