"""The DynamoDB store of key holds, in the items of the keys' heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, ConditionBase

from signalbox.aws.exchange.items import head_key
from signalbox.aws.shared.dynamodb import milliseconds, succeeds, updated
from signalbox.exchange.model.topics import RoutingKey
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


@dataclass(frozen=True, slots=True)
class DynamoKeyHolds:
    """`KeyHolds` over the table `Exchanges`: one write to hold a key, and one to release it."""

    table: "Table"

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

        Returns None if other messages hold it, unless the first of them is among `messages`: then they share the hold.
        """
        is_free = Attr("held_until").not_exists() | Attr("held_until").lte(milliseconds(now))
        is_ours = Attr("held_until").gt(milliseconds(now)) & Attr("held_for[0]").is_in(list(messages))
        for value, condition in ((":messages", is_free), ("list_append(held_for, :messages)", is_ours)):
            waiting = self._hold(exchange, key, value, condition, messages=messages, until=until)
            if waiting is not None:
                return waiting
        return None

    def release(
        self, exchange: ExchangeName, key: RoutingKey, *, held: Sequence[MessageId], left: Sequence[MessageId]
    ) -> None:
        """Reduce the hold of `held` to the messages `left`, or end it without any; no effect if it has changed."""
        values: dict[str, list[MessageId]] = {":left": list(left)} if left else {}
        succeeds(
            lambda: self.table.update_item(
                Key=head_key(exchange, key),
                UpdateExpression="SET held_for = :left" if left else "REMOVE held_for, held_until",
                ConditionExpression=Attr("held_for").eq(list(held)),
                **({"ExpressionAttributeValues": values} if left else {}),  # type: ignore[arg-type]  # as it may be
            )
        )

    def _hold(
        self,
        exchange: ExchangeName,
        key: RoutingKey,
        value: str,
        condition: ConditionBase,
        *,
        messages: Sequence[MessageId],
        until: datetime,
    ) -> Sequence[MessageId] | None:
        item = updated(
            self.table,
            {
                "Key": head_key(exchange, key),
                "UpdateExpression": f"SET held_for = {value}, held_until = :until",
                "ConditionExpression": condition,
                "ExpressionAttributeValues": {":messages": list(messages), ":until": milliseconds(until)},
            },
        )
        return None if item is None else list(map(MessageId, item["held_for"]))
