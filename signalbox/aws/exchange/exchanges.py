"""The DynamoDB stores of exchange, queue and user records."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, ConditionBase, Key

from signalbox.aws.exchange.items import (
    BY_KIND_INDEX,
    EXCHANGE_RECORD,
    HEAD,
    IS_DELETING,
    LIVE_ONLY_USER,
    MINUTE,
    QUEUE_RECORD,
    USER,
    arvados_key,
    exchange_item,
    partition,
    queue_item,
    record_key,
    sender_key,
    user_item,
    user_key,
    user_of,
)
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import (
    Item,
    delete_all,
    every_item,
    every_key,
    milliseconds,
    succeeds,
    transacted,
    updated,
)
from signalbox.backoff import Backoff
from signalbox.errors import Contended
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.events import ADMINISTRATOR
from signalbox.exchange.model.records import DeclaredQueue, ExchangeRecord, ResourceKind, ResourceRef, User
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

IS_NEW = Attr("pk").not_exists()
MAXIMUM_TRANSACTION = 100  # of TransactWriteItems


class UsersChanged(Contended):
    """Raised when another command gave users an IAM identity at the same time."""


@dataclass(frozen=True, slots=True)
class DynamoExchanges:
    """`Exchanges` over the table `Exchanges`."""

    table: "Table"

    def find(self, name: ExchangeName) -> ExchangeRecord | None:
        """Return an exchange, or None."""
        item = _read(self.table, record_key(ResourceRef(ResourceKind.EXCHANGE, name)))
        return EXCHANGE_RECORD.read(item) if item else None

    def every(self) -> Sequence[ExchangeRecord]:
        """Return all exchanges, by name, eventually consistent."""
        return [EXCHANGE_RECORD.read(item) for item in _of_kind(self.table, ResourceKind.EXCHANGE)]

    def create(self, exchange: ExchangeRecord) -> bool:
        """Store a new record; return whether none existed."""
        item = exchange_item(exchange)
        if self.find(exchange.name) is None:
            self._forget_numbers(
                exchange.resource
            )  # a router may have written them after the deletion of an earlier one
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=IS_NEW))

    def save(self, exchange: ExchangeRecord, *, replacing: ExchangeRecord) -> ExchangeRecord | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""
        stored = replace(exchange, version=replacing.version + 1)
        return stored if _replaces(self.table, exchange_item(stored), replacing.version) else None

    def forget(self, exchange: ExchangeRecord) -> bool:
        """Delete a record, heads of keys and counters; return whether the record was unchanged since it was read."""
        # The heads go first: a new exchange of that name must start its numbers at one.
        if self.find(exchange.name) == exchange:
            self._forget_numbers(exchange.resource)
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

    def _forget_numbers(self, exchange: ResourceRef) -> None:
        _delete_matching(self.table, Key("pk").eq(HEAD + exchange.name))
        _delete_counters(self.table, exchange)


@dataclass(frozen=True, slots=True)
class DynamoQueues:
    """`Queues` over the table `Exchanges`."""

    table: "Table"

    def find(self, name: DeclaredName) -> DeclaredQueue | None:
        """Return a queue, or None."""
        item = _read(self.table, record_key(ResourceRef(ResourceKind.QUEUE, name)))
        return QUEUE_RECORD.read(item) if item else None

    def every(self) -> Sequence[DeclaredQueue]:
        """Return all queues, by name, eventually consistent."""
        return [QUEUE_RECORD.read(item) for item in _of_kind(self.table, ResourceKind.QUEUE)]

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
        return QUEUE_RECORD.read(item) if item else None

    def forget(self, queue: DeclaredQueue) -> bool:
        """Delete a record and its counters; return whether it was unchanged since it was read."""
        _delete_counters(self.table, queue.resource)
        return _is_deleted(self.table, queue.resource, queue.version)


@dataclass(frozen=True, slots=True)
class DynamoUsers:
    """`Users` over the table `Exchanges`: an item for the record, and one that maps the SenderId to the user.

    A live-only user has no second item.
    """

    table: "Table"
    backoff: Backoff = BACKOFF

    def find(self, name: UserName) -> User | None:
        """Return a user, or None."""
        item = _read(self.table, user_key(name))
        return user_of(item) if item else None

    def find_all(self, names: Iterable[UserName]) -> Mapping[UserName, User]:
        """Return those of the named users that exist."""
        keys = [user_key(name) for name in dict.fromkeys(names)]
        found = map(user_of, every_key(self.table, keys, backoff=self.backoff))
        return {user.name: user for user in found}

    def find_sender(self, user_id: str) -> UserName | None:
        """Return the user with an IAM unique id, `ADMINISTRATOR` for one who was noted, or None."""
        item = _read(self.table, sender_key(user_id))
        return UserName(item["name"]) if item else None

    def note_administrator(self, user_id: str) -> None:
        """Store the IAM unique id of an administrator; that of a user stays."""
        with suppress(self.table.meta.client.exceptions.ConditionalCheckFailedException):
            self.table.put_item(
                Item=sender_key(user_id) | {"name": ADMINISTRATOR}, ConditionExpression="attribute_not_exists(pk)"
            )

    def every(self) -> Sequence[User]:
        """Return the users with an IAM identity, by name, eventually consistent."""
        return [user_of(item) for item in _of_kind(self.table, USER)]

    def live_only(self) -> Iterable[User]:
        """Return the users that only join realms, by name, eventually consistent."""
        return map(user_of, _of_kind(self.table, LIVE_ONLY_USER))

    def put(self, user: User) -> None:
        """Store a user, replacing an older record; the older record's `user_id` is released."""
        found = self.find(user.name)
        kept = [user_item(user)]
        if user.user_id is not None:
            kept.append(sender_key(user.user_id) | {"name": user.name})
        writes: list[TransactWriteItemTypeDef] = [
            {"Put": {"TableName": self.table.name, "Item": item}} for item in kept
        ]
        if found is not None and found.user_id not in (user.user_id, None):
            writes.append({"Delete": {"TableName": self.table.name, "Key": sender_key(found.user_id)}})
        transacted(self.table, writes)

    def put_live_only(self, users: Sequence[User]) -> None:
        """Store live-only users, 100 in a transaction; an interrupted call is completed by repeating it.

        Raises `UsersChanged` if one of them has an IAM identity: replacing that record would orphan the identity.
        """
        for start in range(0, len(users), MAXIMUM_TRANSACTION):
            some = users[start : start + MAXIMUM_TRANSACTION]
            held = transacted(self.table, [self._put_live_only(user) for user in some])
            taken = [str(user.name) for user, is_stored in zip(some, held, strict=True) if not is_stored]
            if taken:
                raise UsersChanged(f"users {', '.join(taken)} got an IAM identity at the same time: repeat the command")

    def _put_live_only(self, user: User) -> "TransactWriteItemTypeDef":
        return {
            "Put": {
                "TableName": self.table.name,
                "Item": user_item(user),
                "ConditionExpression": "attribute_not_exists(pk) OR kind = :live",
                "ExpressionAttributeValues": {":live": LIVE_ONLY_USER},
            }
        }

    def remove(self, name: UserName) -> None:
        """Delete a user. Deleting a missing user has no effect."""
        found = self.find(name)
        if found is not None:
            keys = [user_key(name)] if found.user_id is None else [user_key(name), sender_key(found.user_id)]
            transacted(self.table, [{"Delete": {"TableName": self.table.name, "Key": key}} for key in keys])


def _read(table: "Table", key: Item) -> Item | None:
    return table.get_item(Key=key, ConsistentRead=True).get("Item")


def _of_kind(table: "Table", kind: str) -> list[Item]:
    query: Mapping[str, object] = {"IndexName": BY_KIND_INDEX, "KeyConditionExpression": Key("kind").eq(kind)}
    return list(every_item(table.query, query))


def _delete_counters(table: "Table", resource: ResourceRef) -> None:
    _delete_matching(table, Key("pk").eq(partition(resource)) & Key("sk").begins_with(MINUTE))


def _delete_matching(table: "Table", condition: "ConditionBase") -> None:
    query = {"KeyConditionExpression": condition, "ProjectionExpression": "pk, sk", "ConsistentRead": True}
    delete_all(table, every_item(table.query, query))


def _replaces(table: "Table", item: Item, version: int) -> bool:
    return succeeds(lambda: table.put_item(Item=item, ConditionExpression=Attr("version").eq(version)))


def _is_deleted(table: "Table", resource: ResourceRef, version: int) -> bool:
    is_as_read = Attr("version").eq(version)
    return succeeds(lambda: table.delete_item(Key=record_key(resource), ConditionExpression=is_as_read))
