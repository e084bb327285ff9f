"""The DynamoDB store of key holds, in the items of the keys' heads."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, ConditionBase

from signalbox.aws.exchange.items import head_key
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import Item, ItemBusy, milliseconds, transacted, unless_busy, updated
from signalbox.backoff import Backoff
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.key_holds import EndingHold
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import UpdateTypeDef


@dataclass(frozen=True, slots=True)
class DynamoKeyHolds:
    """`KeyHolds` over the table `Exchanges`: one write to hold a key, and one call to release any number."""

    table: "Table"
    backoff: Backoff = BACKOFF

    def hold(
        self,
        exchange: ExchangeName,
        key: RoutingKey,
        *,
        messages: Sequence[MessageId],
        now: datetime,
        until: datetime,
    ) -> Sequence[MessageId] | None:
        """Hold a key for messages until a time; return all messages that hold it, in order.

        Returns None if other messages hold it, unless the first of them is among `messages`: then they share the hold,
        with the time that it has.
        """
        is_free = Attr("held_until").not_exists() | Attr("held_until").lte(milliseconds(now))
        is_ours = Attr("held_until").gt(milliseconds(now)) & Attr("held_for[0]").is_in(list(messages))
        changes: tuple[tuple[str, ConditionBase, Item], ...] = (
            ("SET held_for = :messages, held_until = :until", is_free, {":until": milliseconds(until)}),
            ("SET held_for = list_append(held_for, :messages)", is_ours, {}),
        )
        for expression, condition, values in changes:
            waiting = self._hold(exchange, key, expression, condition, {":messages": list(messages), **values})
            if waiting is not None:
                return waiting
        return None

    def release(self, exchange: ExchangeName, holds: Sequence[EndingHold]) -> None:
        """Reduce holds to the messages that are left, or end those without any, in one call.

        No effect on a hold that has changed. Raises `ItemBusy`.
        """
        updates = [self._release(exchange, one) for one in holds]
        if len(updates) > 1:
            with suppress(ItemBusy):
                if all(transacted(self.table, [{"Update": update} for update in updates])):
                    return
        for update in updates:
            unless_busy(partial(self.table.meta.client.update_item, **update), self.backoff)

    def _release(self, exchange: ExchangeName, hold: EndingHold) -> "UpdateTypeDef":
        left: Item = {":left": list(hold.left)} if hold.left else {}
        return {
            "TableName": self.table.name,
            "Key": head_key(exchange, hold.key),
            "UpdateExpression": "SET held_for = :left" if left else "REMOVE held_for, held_until",
            "ConditionExpression": "held_for = :held",
            "ExpressionAttributeValues": {":held": list(hold.held), **left},
        }

    def _hold(
        self,
        exchange: ExchangeName,
        key: RoutingKey,
        expression: str,
        condition: ConditionBase,
        values: Item,
    ) -> Sequence[MessageId] | None:
        arguments = {
            "Key": head_key(exchange, key),
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
        }
        try:
            item = updated(self.table, arguments)
        except ItemBusy:  # another router stores its hold at this moment
            return None
        return None if item is None else list(map(MessageId, item["held_for"]))
