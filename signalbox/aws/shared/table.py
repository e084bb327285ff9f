"""A table of DynamoDB through botocore's client: boto3's `Table` takes longer to import, to create and in each call."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from signalbox.aws.shared.conditions import Condition, Placeholders

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# The parameters that hold an item, and those that may hold a condition.
ITEMS = ("Item", "Key", "ExpressionAttributeValues", "ExclusiveStartKey")
CONDITIONS = ("ConditionExpression", "KeyConditionExpression")
NAMES, VALUES = "ExpressionAttributeNames", "ExpressionAttributeValues"

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DynamoTable:
    """The calls of boto3's `Table` that adapters make, with the same parameters and results; threads may share it."""

    client: "DynamoDBClient"
    name: str

    def get_item(self, **parameters: object) -> Item:
        """Return an item under the name `Item`, if it exists."""
        return _plain_response(self.client.get_item(**self._request(parameters)))

    def put_item(self, **parameters: object) -> Item:
        """Store an item."""
        return _plain_response(self.client.put_item(**self._request(parameters)))

    def update_item(self, **parameters: object) -> Item:
        """Change an item; the old or new one is under the name `Attributes`, as `ReturnValues` says."""
        return _plain_response(self.client.update_item(**self._request(parameters)))

    def delete_item(self, **parameters: object) -> Item:
        """Delete an item; the old one is under the name `Attributes`, as `ReturnValues` says."""
        return _plain_response(self.client.delete_item(**self._request(parameters)))

    def query(self, **parameters: object) -> Item:
        """Return a page of items under the name `Items`, and where the next one starts as `LastEvaluatedKey`."""
        return _plain_response(self.client.query(**self._request(parameters)))

    def _request(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        request: dict[str, Any] = {"TableName": self.name, **parameters}
        placeholders = Placeholders()
        for name in CONDITIONS:
            if isinstance(request.get(name), Condition):
                request[name] = placeholders.text(request[name])
        for name, found in ((NAMES, placeholders.names), (VALUES, placeholders.values)):
            if found:
                request[name] = request.get(name, {}) | found
        items = {name: attributes(request[name]) for name in ITEMS if name in request}
        return {**request, **items}


def _plain_response(response: Mapping[str, Any]) -> Item:
    found = dict(response)
    for name in ("Item", "Attributes", "LastEvaluatedKey"):
        if name in found:
            found[name] = plain_item(found[name])
    if "Items" in found:
        found["Items"] = [plain_item(item) for item in found["Items"]]
    return found


def attributes(item: Mapping[str, object]) -> dict[str, Any]:
    """Return an item with DynamoDB's types. Raises `TypeError` for a value without one, such as a float."""
    return {name: _attribute(value) for name, value in item.items()}


def _attribute(value: object) -> dict[str, object]:
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return {"N": str(value)}
    if isinstance(value, bytes):
        return {"B": value}
    raise TypeError(f"no attribute of our tables has the type {type(value).__name__}")


def plain_item(item: Mapping[str, Mapping[str, Any]]) -> Item:
    """Return an item without DynamoDB's types: texts, bytes, and numbers as `Decimal`."""
    return {name: _plain(*next(iter(value.items()))) for name, value in item.items()}


def _plain(kind: str, value: Any) -> object:  # noqa: ANN401 - of any type
    return Decimal(value) if kind == "N" else value
