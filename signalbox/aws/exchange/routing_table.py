"""The table `Exchanges` as the router reads and writes it: records, bindings, heads of keys and counters.

The cost of routing in DynamoDB, on demand and in request units (a write costs five times a read): each batch makes one
BatchGetItem with a read for each exchange on the way, usually one, and half a read a minute for each queue's message
TTL. An ordered exchange reads and writes one item for each key in the batch; detours cost nothing while there are none.
Counters cost one write for the exchange and one for each queue with new copies: more than everything else, and
therefore written once a batch and not once a message. Batches of more than ten messages share these costs.
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
    IS_DELETING,
    binding_of,
    exchange_of,
    first_word_key,
    head_key,
    minute_key,
    partition,
    record_key,
    sender_key,
)
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import Item, every_item, every_key, milliseconds, succeeds
from signalbox.backoff import Backoff
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import Binding, ResourceKind, ResourceRef
from signalbox.exchange.model.routing_ports import RoutingSnapshot
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head
from signalbox.messages import MessageId
from signalbox.parallel import ParallelMap, serial_map
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
    backoff: Backoff = BACKOFF

    def snapshot(self, exchanges: Iterable[ExchangeName], *, senders: Iterable[str]) -> RoutingSnapshot:
        """Return the records of exchanges and the users of SenderIds, in one read for any number of them."""
        keys = [record_key(ResourceRef(ResourceKind.EXCHANGE, name)) for name in exchanges]
        keys += [sender_key(sender) for sender in senders]
        items = list(every_key(self.table, keys, backoff=self.backoff))
        found = [exchange_of(item) for item in items if not item["pk"].startswith(SENDER)]
        users = {item["pk"].removeprefix(SENDER): UserName(item["name"]) for item in items if item["sk"] == "sender"}
        return RoutingSnapshot({exchange.name: exchange for exchange in found}, users)

    def bindings(self, exchange: ExchangeName, *, first_word: str | None = None) -> Iterator[Binding]:
        """Return the bindings from an exchange, at least as new as the last snapshot, read page by page.

        With a first word, return the bindings whose patterns begin with it, and possibly others.
        """
        beginning = BINDING if first_word is None else first_word_key([first_word])
        query = {
            "KeyConditionExpression": Key("pk").eq(partition(ResourceRef(ResourceKind.EXCHANGE, exchange)))
            & Key("sk").begins_with(beginning),
            "ConsistentRead": True,
        }
        return (binding_of(item) for item in every_item(self.table.query, query))

    def message_ttls(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, timedelta]:
        """Return the message TTL of the queues that have one; the values may be slightly stale."""
        keys = [record_key(ResourceRef(ResourceKind.QUEUE, queue)) for queue in queues]
        items = every_key(self.table, keys, is_consistent=False, backoff=self.backoff)
        return {
            DeclaredName(item["name"]): timedelta(seconds=float(item["message_ttl_seconds"]))
            for item in items
            if "message_ttl_seconds" in item
        }

    def is_declared(self, queue: DeclaredName) -> bool:
        """Return whether a queue is declared and not being deleted."""
        item = self.table.get_item(Key=record_key(ResourceRef(ResourceKind.QUEUE, queue)), ConsistentRead=True).get(
            "Item"
        )
        return item is not None and not item.get(IS_DELETING)


@dataclass(frozen=True, slots=True)
class DynamoHeads:
    """`Heads` over the table `Exchanges`: an item for each key, with an attribute for each detour.

    The newest messages have consecutive numbers up to the head's, so their ids are stored as a list; with it, the item
    fits into one write unit.
    """

    table: "Table"
    backoff: Backoff = BACKOFF

    def read(self, exchange: ExchangeName, keys: Iterable[RoutingKey]) -> Mapping[RoutingKey, Head]:
        """Return the stored heads of keys; a new key has none."""
        items = every_key(self.table, [head_key(exchange, key) for key in keys], backoff=self.backoff)
        return {RoutingKey(item["sk"].removeprefix(HEAD_KEY)): _head(item) for item in items}

    def save(self, exchange: ExchangeName, key: RoutingKey, head: Head, *, replacing: Head) -> bool:
        """Store a head's numbers, not its detours; return whether the stored head still equalled `replacing`."""
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

    def start_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """Record that the messages of a key up to the number `last` reach a queue by the retry queue."""
        self.table.update_item(
            Key=head_key(exchange, key),
            UpdateExpression="SET #detour = :last",
            ExpressionAttributeNames={"#detour": DETOUR + queue},
            ExpressionAttributeValues={":last": last},
        )

    def extend_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> bool:
        """Set the last message of an existing detour; return False if it has ended."""
        return succeeds(
            lambda: self.table.update_item(
                Key=head_key(exchange, key),
                UpdateExpression="SET #detour = :last",
                ExpressionAttributeNames={"#detour": DETOUR + queue},
                ExpressionAttributeValues={":last": last},
                ConditionExpression="attribute_exists(#detour)",
            )
        )

    def end_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """End a detour if `last` is its last message."""
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
class DynamoCounterWriter:
    """`CounterWriter` over the table `Exchanges`: an item for each minute of an exchange or a queue."""

    table: "Table"
    parallel_map: ParallelMap = serial_map

    def add(self, counts: Mapping[ResourceRef, Mapping[str, int]], *, at: datetime) -> None:
        """Add to the counters of exchanges and queues; log failures, since the data lake has the same facts."""
        for _ in self.parallel_map(lambda resource: self._add(resource, counts[resource], at), counts):
            pass

    def _add(self, resource: ResourceRef, counts: Mapping[str, int], at: datetime) -> None:
        names = {f"#{name}": name for name in counts}
        values = {f":{name}": count for name, count in counts.items()}
        expires_at = round((at + COUNTERS_KEPT_FOR).timestamp())
        try:
            # The client is thread-safe, the table resource is not.
            self.table.meta.client.update_item(
                TableName=self.table.name,
                Key={"pk": partition(resource), "sk": minute_key(at)},
                UpdateExpression="SET last_at = :last_at, expires_at = :expires_at ADD "
                + ", ".join(f"#{name} :{name}" for name in counts),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={**values, ":last_at": milliseconds(at), ":expires_at": expires_at},
            )
        except (ClientError, BotoCoreError):
            logger.exception("counters of %s were not increased", resource)


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
