"""The version of all users' rights in a stage, by which function instances notice that their caches are old."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.exchange.items import rights_version_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


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
