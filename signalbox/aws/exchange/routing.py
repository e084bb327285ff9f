"""The table of exchanges as the router reads it: versions and bindings, heads of ordered keys, and counters.

What routing asks of DynamoDB, on demand and in request units (a write is five times as dear as a read): for each batch
one BatchGetItem with a read for each exchange on the way, usually one, and half a read a minute for each queue's
lifetime. An ordered exchange reads and writes one item for each key in the batch; detours cost nothing while there are
none. Counters cost one write for the exchange and one for each queue that got something: more than all the rest, and
therefore written once a batch and not once a message. Batches of more than ten messages share all of this.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.exchange.items import (
    BINDING,
    HEAD_KEY,
    IS_LEAVING,
    bound_of,
    exchange_of,
    first_word_key,
    head_key,
    minute_key,
    partition,
    record_key,
    sender_key,
)
from signalbox.aws.shared.dynamodb import Item, every_item, every_key, milliseconds, succeeds
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import Bound, Kind, Place
from signalbox.exchange.model.routing_ports import Look, SideBySide, one_by_one
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head
from signalbox.messages import MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

SENDER, DETOUR = "sender#", "detour:"
COUNTERS_KEPT_FOR = timedelta(hours=2)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamoRoutingTable:
    """`RoutingTable` and `DeclaredQueues` over the table `Exchanges`."""

    table: "Table"

    def look(self, exchanges: Iterable[ExchangeName], *, senders: Iterable[str]) -> Look:
        """Return exchanges as they stand, and the users behind SenderIds, in one read however many there are."""
        keys = [record_key(Place(Kind.EXCHANGE, name)) for name in exchanges]
        items = list(every_key(self.table, keys + [sender_key(sender) for sender in senders]))
        found = [exchange_of(item) for item in items if not item["pk"].startswith(SENDER)]
        users = {item["pk"].removeprefix(SENDER): UserName(item["name"]) for item in items if item["sk"] == "sender"}
        return Look({exchange.name: exchange for exchange in found}, users)

    def bindings(self, exchange: ExchangeName, *, first_word: str | None = None) -> Iterator[Bound]:
        """Return the bindings from an exchange, none older than the last look; read as far as they are asked for.

        With a first word, those whose patterns begin with it, and perhaps others.
        """
        beginning = BINDING if first_word is None else first_word_key([first_word])
        query = {
            "KeyConditionExpression": Key("pk").eq(partition(Place(Kind.EXCHANGE, exchange)))
            & Key("sk").begins_with(beginning),
            "ConsistentRead": True,
        }
        return (bound_of(item) for item in every_item(self.table.query, query))

    def lifetimes(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, timedelta]:
        """Return how old messages become in those of the queues that say so; may be a moment old."""
        keys = [record_key(Place(Kind.QUEUE, queue)) for queue in queues]
        items = every_key(self.table, keys, is_consistent=False)
        return {
            DeclaredName(item["name"]): timedelta(seconds=float(item["message_ttl_seconds"]))
            for item in items
            if "message_ttl_seconds" in item
        }

    def is_declared(self, queue: DeclaredName) -> bool:
        """Say whether a queue is declared, and not about to be deleted."""
        item = self.table.get_item(Key=record_key(Place(Kind.QUEUE, queue)), ConsistentRead=True).get("Item")
        return item is not None and not item.get(IS_LEAVING)


@dataclass(frozen=True, slots=True)
class DynamoHeads:
    """`Heads` over the table `Exchanges`: an item for each key, in which each detour is an attribute.

    The newest messages have the numbers up to the head's, so that their ids in order say all; with them the item keeps
    within one write unit.
    """

    table: "Table"

    def read(self, exchange: ExchangeName, keys: Iterable[RoutingKey]) -> Mapping[RoutingKey, Head]:
        """Return the head of each key; that of a new key has counted nothing."""
        items = every_key(self.table, [head_key(exchange, key) for key in keys])
        return {RoutingKey(item["sk"].removeprefix(HEAD_KEY)): _head(item) for item in items}

    def save(self, exchange: ExchangeName, key: RoutingKey, head: Head, *, replacing: Head) -> bool:
        """Store what a head has counted; say whether it still stood as in `replacing`. Detours stay as they are."""
        is_as_read = Attr("sequence").eq(replacing.sequence) if replacing.sequence else Attr("sequence").not_exists()
        return succeeds(
            lambda: self.table.update_item(
                Key=head_key(exchange, key),
                UpdateExpression="SET #sequence = :sequence, recent = :recent",
                ExpressionAttributeNames={"#sequence": "sequence"},
                ExpressionAttributeValues={
                    ":sequence": head.sequence,
                    ":recent": sorted(head.recent, key=lambda message: head.recent[message]),
                },
                ConditionExpression=is_as_read,
            )
        )

    def detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """Note that messages of a key up to a sequence number reach a queue by way of the retry queue."""
        self.table.update_item(
            Key=head_key(exchange, key),
            UpdateExpression="SET #detour = :last",
            ExpressionAttributeNames={"#detour": DETOUR + queue},
            ExpressionAttributeValues={":last": last},
        )

    def prolong(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> bool:
        """Note a later last message of a detour; say whether there still is one."""
        return succeeds(
            lambda: self.table.update_item(
                Key=head_key(exchange, key),
                UpdateExpression="SET #detour = :last",
                ExpressionAttributeNames={"#detour": DETOUR + queue},
                ExpressionAttributeValues={":last": last},
                ConditionExpression="attribute_exists(#detour)",
            )
        )

    def end(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """End a detour, if this is its last message."""
        succeeds(
            lambda: self.table.update_item(
                Key=head_key(exchange, key),
                UpdateExpression="REMOVE #detour",
                ExpressionAttributeNames={"#detour": DETOUR + queue},
                ExpressionAttributeValues={":last": last},
                ConditionExpression="#detour = :last",
            )
        )


@dataclass(frozen=True, slots=True)
class DynamoTally:
    """`Tally` over the table `Exchanges`: an item for each minute of an exchange or a queue."""

    table: "Table"
    side_by_side: SideBySide = one_by_one

    def add(self, counts: Mapping[Place, Mapping[str, int]], *, at: datetime) -> None:
        """Add to the counters of exchanges and queues; a failure is logged, since the lake has the same facts."""
        for _ in self.side_by_side(lambda place: self._add(place, counts[place], at), counts):
            pass

    def _add(self, place: Place, counts: Mapping[str, int], at: datetime) -> None:
        names = {f"#{name}": name for name in counts}
        values = {f":{name}": count for name, count in counts.items()}
        expires_at = round((at + COUNTERS_KEPT_FOR).timestamp())
        try:
            # The client and not the table: only the former may be shared by threads.
            self.table.meta.client.update_item(
                TableName=self.table.name,
                Key={"pk": partition(place), "sk": minute_key(at)},
                UpdateExpression="SET last_at = :last_at, expires_at = :expires_at ADD "
                + ", ".join(f"#{name} :{name}" for name in counts),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={**values, ":last_at": milliseconds(at), ":expires_at": expires_at},
            )
        except (ClientError, BotoCoreError):
            logger.exception("counters of %s were not increased", place)


def _head(item: Item) -> Head:
    sequence, recent = int(item.get("sequence", 0)), item.get("recent", [])
    first = sequence - len(recent) + 1
    return Head(
        sequence=sequence,
        recent={MessageId(message): number for number, message in enumerate(recent, start=first)},
        detours={
            QueueName(name.removeprefix(DETOUR)): int(last) for name, last in item.items() if name.startswith(DETOUR)
        },
    )
