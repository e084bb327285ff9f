"""The DynamoDB store of key holds, in the items of the keys' heads."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from signalbox.aws.exchange.items import head_key
from signalbox.aws.shared.dynamodb import DynamoTable, ItemBusy, milliseconds
from signalbox.aws.shared.expressions import Update, attr
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.key_holds import EndingHold
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

HELD_FOR, HELD_UNTIL = attr("held_for"), attr("held_until")


@dataclass(frozen=True, slots=True)
class DynamoKeyHolds:
    """`KeyHolds` over the table `Exchanges`: one write to hold a key, and one call to release any number."""

    table: DynamoTable

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
        is_free = HELD_UNTIL.not_exists() | HELD_UNTIL.lte(milliseconds(now))
        is_ours = HELD_UNTIL.gt(milliseconds(now)) & HELD_FOR.at(0).is_in(messages)
        first = {"held_for": list(messages), "held_until": milliseconds(until)}
        for sets, condition in ((first, is_free), ({"held_for": HELD_FOR.extended(messages)}, is_ours)):
            waiting = self._hold(Update(head_key(exchange, key), sets=sets, condition=condition))
            if waiting is not None:
                return waiting
        return None

    def release(self, exchange: ExchangeName, holds: Sequence[EndingHold]) -> None:
        """Reduce holds to the messages that are left, or end holds without messages, in one call.

        A hold that has changed is left as it is. Raises `ItemBusy`.
        """
        updates = [_release(exchange, one) for one in holds]
        if len(updates) > 1:
            with suppress(ItemBusy):
                if all(self.table.transact(*updates)):
                    return
        for update in updates:
            self.table.write_unless_busy(update)

    def _hold(self, update: Update) -> Sequence[MessageId] | None:
        try:
            item = self.table.written(update)
        except ItemBusy:  # another router stores its hold at this moment
            return None
        return None if item is None else list(map(MessageId, item["held_for"]))


def _release(exchange: ExchangeName, hold: EndingHold) -> Update:
    is_as_read = HELD_FOR.eq(list(hold.held))
    if hold.left:
        return Update(head_key(exchange, hold.key), sets={"held_for": list(hold.left)}, condition=is_as_read)
    return Update(head_key(exchange, hold.key), removes=[HELD_FOR, HELD_UNTIL], condition=is_as_read)
