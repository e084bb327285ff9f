"""Counters of exchanges and queues, and the version of all rights by which instances notice old caches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Key

from signalbox.aws.exchange.items import MINUTE, minute_key, minute_of, partition, rights_version_key
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


@dataclass(frozen=True, slots=True)
class DynamoRightsVersion:
    """`RightsVersion`: a number in the table `Exchanges`."""

    table: "Table"

    def increment(self) -> None:
        """Raise the version. The rights must have been written before."""
        self.table.update_item(
            Key=rights_version_key(),
            UpdateExpression="ADD #version :one",
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={":one": 1},
        )
