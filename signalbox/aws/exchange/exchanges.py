"""The DynamoDB stores of exchange, queue and user records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key

from signalbox.aws.exchange.items import (
    BY_KIND_INDEX,
    HEAD,
    IS_DELETING,
    USER,
    arvados_key,
    exchange_item,
    exchange_of,
    queue_item,
    queue_of,
    record_key,
    sender_key,
    user_item,
    user_key,
    user_of,
)
from signalbox.aws.shared.dynamodb import Item, delete_all, every_item, milliseconds, succeeds, transacted, updated
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import DeclaredQueue, Exchange, ResourceKind, ResourceRef, User
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

IS_NEW = Attr("pk").not_exists()


@dataclass(frozen=True, slots=True)
class DynamoExchanges:
    """`Exchanges` over the table `Exchanges`."""

    table: "Table"

    def find(self, name: ExchangeName) -> Exchange | None:
        """Return an exchange, or None."""
        item = _read(self.table, record_key(ResourceRef(ResourceKind.EXCHANGE, name)))
        return exchange_of(item) if item else None

    def every(self) -> Sequence[Exchange]:
        """Return all exchanges, by name, eventually consistent."""
        return [exchange_of(item) for item in _of_kind(self.table, ResourceKind.EXCHANGE)]

    def create(self, exchange: Exchange) -> bool:
        """Store a new record; return whether none existed."""
        item = exchange_item(exchange)
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=IS_NEW))

    def save(self, exchange: Exchange, *, replacing: Exchange) -> Exchange | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""
        stored = replace(exchange, version=replacing.version + 1)
        return stored if _replaces(self.table, exchange_item(stored), replacing.version) else None

    def forget(self, exchange: Exchange) -> bool:
        """Delete a record and the heads of its routing keys; return whether it was unchanged since it was read."""
        # The heads go first: a new exchange of that name must start its numbers at one.
        if self.find(exchange.name) == exchange:
            self._forget_heads(exchange.name)
        return _is_deleted(self.table, exchange.resource, exchange.version)

    def arvados_realm(self) -> ExchangeName | None:
        """Return the name of the exchange that was last made the realm of Arvados' clients, or None."""
        item = _read(self.table, arvados_key())
        return ExchangeName(item["realm"]) if item else None

    def make_arvados_realm(self, name: ExchangeName, *, replacing: ExchangeName | None) -> bool:
        """Make an exchange the realm of Arvados' clients; return whether `replacing` was that realm until now."""
        is_as_read = IS_NEW if replacing is None else Attr("realm").eq(replacing)
        item = arvados_key() | {"realm": name}
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=is_as_read))

    def _forget_heads(self, name: ExchangeName) -> None:
        heads = {
            "KeyConditionExpression": Key("pk").eq(HEAD + name),
            "ProjectionExpression": "pk, sk",
            "ConsistentRead": True,
        }
        delete_all(self.table, every_item(self.table.query, heads))


@dataclass(frozen=True, slots=True)
class DynamoQueues:
    """`Queues` over the table `Exchanges`."""

    table: "Table"

    def find(self, name: DeclaredName) -> DeclaredQueue | None:
        """Return a queue, or None."""
        item = _read(self.table, record_key(ResourceRef(ResourceKind.QUEUE, name)))
        return queue_of(item) if item else None

    def every(self) -> Sequence[DeclaredQueue]:
        """Return all queues, by name, eventually consistent."""
        return [queue_of(item) for item in _of_kind(self.table, ResourceKind.QUEUE)]

    def create(self, queue: DeclaredQueue) -> bool:
        """Store a new record; return whether none existed."""
        return succeeds(lambda: self.table.put_item(Item=queue_item(queue), ConditionExpression=IS_NEW))

    def save(self, queue: DeclaredQueue, *, replacing: DeclaredQueue) -> DeclaredQueue | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""
        stored = replace(queue, version=replacing.version + 1)
        return stored if _replaces(self.table, queue_item(stored), replacing.version) else None

    def record_heartbeat(self, name: DeclaredName, *, now: datetime) -> DeclaredQueue | None:
        """Store a consumer heartbeat with the next version; return None if the queue is missing or being deleted."""
        item = updated(
            self.table,
            {
                "Key": record_key(ResourceRef(ResourceKind.QUEUE, name)),
                "UpdateExpression": "SET consumed_at = :now ADD version :one",
                "ExpressionAttributeValues": {":now": milliseconds(now), ":one": 1},
                "ConditionExpression": Attr("pk").exists() & Attr(IS_DELETING).not_exists(),
            },
        )
        return queue_of(item) if item else None

    def forget(self, queue: DeclaredQueue) -> bool:
        """Delete a record; return whether it was unchanged since it was read."""
        return _is_deleted(self.table, queue.resource, queue.version)


@dataclass(frozen=True, slots=True)
class DynamoUsers:
    """`Users` over the table `Exchanges`: an item for the record, and one that maps the SenderId to the user."""

    table: "Table"

    def find(self, name: UserName) -> User | None:
        """Return a user, or None."""
        item = _read(self.table, user_key(name))
        return user_of(item) if item else None

    def every(self) -> Sequence[User]:
        """Return all users, by name, eventually consistent."""
        return [user_of(item) for item in _of_kind(self.table, USER)]

    def put(self, user: User) -> None:
        """Store a user, replacing an older record; the older record's `user_id` is released."""
        found = self.find(user.name)
        writes: list[TransactWriteItemTypeDef] = [
            {"Put": {"TableName": self.table.name, "Item": item}}
            for item in (user_item(user), sender_key(user.user_id) | {"name": user.name})
        ]
        if found is not None and found.user_id != user.user_id:
            writes.append({"Delete": {"TableName": self.table.name, "Key": sender_key(found.user_id)}})
        transacted(self.table, writes)

    def remove(self, name: UserName) -> None:
        """Delete a user. Deleting a missing user has no effect."""
        found = self.find(name)
        if found is not None:
            keys = (user_key(name), sender_key(found.user_id))
            transacted(self.table, [{"Delete": {"TableName": self.table.name, "Key": key}} for key in keys])


def _read(table: "Table", key: Item) -> Item | None:
    return table.get_item(Key=key, ConsistentRead=True).get("Item")


def _of_kind(table: "Table", kind: str) -> list[Item]:
    query: Mapping[str, object] = {"IndexName": BY_KIND_INDEX, "KeyConditionExpression": Key("kind").eq(kind)}
    return list(every_item(table.query, query))


def _replaces(table: "Table", item: Item, version: int) -> bool:
    return succeeds(lambda: table.put_item(Item=item, ConditionExpression=Attr("version").eq(version)))


def _is_deleted(table: "Table", resource: ResourceRef, version: int) -> bool:
    is_as_read = Attr("version").eq(version)
    return succeeds(lambda: table.delete_item(Key=record_key(resource), ConditionExpression=is_as_read))
