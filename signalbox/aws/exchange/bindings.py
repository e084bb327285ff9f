"""The DynamoDB store of bindings, which changes bindings and the versions of their exchanges in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Key

from signalbox.aws.exchange.items import (
    BACK_REFERENCE,
    BINDING,
    IS_DELETING,
    back_reference_key,
    binding_items,
    binding_key,
    binding_of,
    partition,
    record_key,
)
from signalbox.aws.shared.dynamodb import ItemBusy, every_item, transacted
from signalbox.exchange.model.records import Binding, BindOutcome, ResourceKind, ResourceRef
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

STAYS = f"attribute_exists(pk) AND attribute_not_exists({IS_DELETING})"


@dataclass(frozen=True, slots=True)
class DynamoBindings:
    """`Bindings` over the table `Exchanges`: one item in the partition of each end."""

    table: "Table"

    def bind(self, binding: Binding) -> BindOutcome:
        """Store a binding, unless one of its ends is missing or being deleted; return the outcome.

        Raises `ItemBusy`.
        """
        table, (item, back_reference) = self.table.name, binding_items(binding)
        writes: list[TransactWriteItemTypeDef] = [
            {"Put": {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}},
            {"Put": {"TableName": table, "Item": back_reference}},
            *(self._next_version(resource, STAYS) for resource in _exchanges(binding)),
        ]
        if binding.target.kind is ResourceKind.QUEUE:
            key = record_key(binding.target)
            writes.append({"ConditionCheck": {"TableName": table, "Key": key, "ConditionExpression": STAYS}})
        is_new, _, *stay = transacted(self.table, writes)
        if not all(stay):
            return BindOutcome.REFUSED
        return BindOutcome.BOUND if is_new else BindOutcome.ALREADY_BOUND

    def unbind(self, binding: Binding) -> bool:
        """Remove a binding, with the same changes of versions; return whether it existed. Raises `ItemBusy`."""
        table, key = self.table.name, binding_key(binding)
        writes: list[TransactWriteItemTypeDef] = [
            {"Delete": {"TableName": table, "Key": key, "ConditionExpression": "attribute_exists(pk)"}},
            {"Delete": {"TableName": table, "Key": back_reference_key(binding)}},
            *(self._next_version(resource, "attribute_exists(pk)") for resource in _exchanges(binding)),
        ]
        was_there, *others = transacted(self.table, writes)
        if was_there and not all(others):
            # A record is removed after its bindings, so they are being removed at this moment.
            raise ItemBusy(f"{binding.target} or exchange {binding.exchange!r} is being deleted at this moment")
        return was_there

    def of(self, exchange: ExchangeName) -> Sequence[Binding]:
        """Return the bindings from an exchange."""
        return self._read(ResourceRef(ResourceKind.EXCHANGE, exchange), BINDING)

    def to(self, target: ResourceRef) -> Sequence[Binding]:
        """Return the bindings to an exchange or a queue."""
        return self._read(target, BACK_REFERENCE)

    def _read(self, resource: ResourceRef, beginning: str) -> Sequence[Binding]:
        condition = Key("pk").eq(partition(resource)) & Key("sk").begins_with(beginning)
        query = {"KeyConditionExpression": condition, "ConsistentRead": True}
        return [binding_of(item) for item in every_item(self.table.query, query)]

    def _next_version(self, resource: ResourceRef, condition: str) -> "TransactWriteItemTypeDef":
        return {
            "Update": {
                "TableName": self.table.name,
                "Key": record_key(resource),
                "UpdateExpression": "ADD version :one",
                "ConditionExpression": condition,
                "ExpressionAttributeValues": {":one": 1},
            }
        }


def _exchanges(binding: Binding) -> Sequence[ResourceRef]:
    """Return the exchanges of a binding: one, if it binds an exchange to itself."""
    source = ResourceRef(ResourceKind.EXCHANGE, binding.exchange)
    return (
        [source] if binding.target.kind is ResourceKind.QUEUE or binding.target == source else [source, binding.target]
    )
