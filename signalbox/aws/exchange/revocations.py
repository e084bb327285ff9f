"""The stage's number of revocations, by which function instances notice that rights in their caches may be old."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.exchange.items import revocations_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


@dataclass(frozen=True, slots=True)
class DynamoRevocations:
    """`Revocations`: a number in the table `Exchanges`, which only grows."""

    table: "Table"

    def record(self) -> None:
        """Raise the number. The rights must have been written before."""
        self.table.update_item(
            Key=revocations_key(), UpdateExpression="ADD revocations :one", ExpressionAttributeValues={":one": 1}
        )
