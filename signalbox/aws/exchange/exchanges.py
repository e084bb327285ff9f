"""The DynamoDB stores of exchange, queue and user records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.aws.exchange.items import (
    EXCHANGE_RECORD,
    HEAD,
    IS_DELETING,
    LIVE_ONLY_USER,
    MINUTE,
    QUEUE_RECORD,
    USER,
    arvados_key,
    exchange_item,
    named_key,
    queue_item,
    record_key,
    sender_key,
    user_item,
    user_key,
    user_of,
)
from signalbox.aws.shared.dynamodb import MAXIMUM_TRANSACTION, DynamoTable, milliseconds
from signalbox.aws.shared.expressions import EXISTS, IS_NEW, Delete, Expression, Item, Put, Update, Write, attr
from signalbox.errors import Contended
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.events import ADMINISTRATOR
from signalbox.exchange.model.records import DeclaredQueue, ExchangeRecord, ResourceKind, ResourceRef, User
from signalbox.sarracenia.rights.names import ExchangeName, UserName


class UsersChanged(Contended):
    """Raised when another command gave users an IAM identity at the same time."""


@dataclass(frozen=True, slots=True)
class DynamoExchanges:
    """`Exchanges` over the table `Exchanges`."""

    table: DynamoTable

    def find(self, name: ExchangeName) -> ExchangeRecord | None:
        """Return an exchange, or None."""
        item = self.table.get(record_key(ResourceRef(ResourceKind.EXCHANGE, name)))
        return EXCHANGE_RECORD.read(item) if item else None

    def every(self, *, prefix: str = "") -> Sequence[ExchangeRecord]:
        """Return all exchanges whose names begin so, by name, eventually consistent."""
        return list(map(EXCHANGE_RECORD.read, _named(self.table, ResourceKind.EXCHANGE, prefix)))

    def create(self, exchange: ExchangeRecord) -> bool:
        """Store a new record; return whether none existed."""
        if self.find(exchange.name) is None:
            # A router may have written them after the deletion of an earlier one.
            self._forget_numbers(exchange.resource)
        return self.table.write(Put(exchange_item(exchange), IS_NEW))

    def save(self, exchange: ExchangeRecord, *, replacing: ExchangeRecord) -> ExchangeRecord | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""
        stored = replace(exchange, version=replacing.version + 1)
        return stored if _replaces(self.table, exchange_item(stored), replacing.version) else None

    def forget(self, exchange: ExchangeRecord) -> bool:
        """Delete a record, heads of keys and counters; return whether the record was unchanged since it was read."""
        # The heads go first: a new exchange of that name must start its numbers at one.
        if self.find(exchange.name) == exchange:
            self._forget_numbers(exchange.resource)
        return _is_deleted(self.table, record_key(exchange.resource), exchange.version)

    def arvados_realm(self) -> ExchangeName | None:
        """Return the name of the exchange that was last made the realm of Arvados' clients, or None."""
        item = self.table.get(arvados_key())
        return ExchangeName(item["realm"]) if item else None

    def make_arvados_realm(self, name: ExchangeName, *, replacing: ExchangeName | None) -> bool:
        """Make an exchange the realm of Arvados' clients; return whether `replacing` was that realm until now."""
        is_as_read = IS_NEW if replacing is None else attr("realm").eq(replacing)
        return self.table.write(Put(arvados_key() | {"realm": name}, is_as_read))

    def _forget_numbers(self, exchange: ResourceRef) -> None:
        _delete_matching(self.table, attr("pk").eq(HEAD + exchange.name))
        _delete_counters(self.table, record_key(exchange))


@dataclass(frozen=True, slots=True)
class DynamoQueues:
    """`Queues` over the table `Exchanges`: those of a kind, `LEFT` or those that are declared."""

    table: DynamoTable
    kind: str = ResourceKind.QUEUE

    def find(self, name: DeclaredName) -> DeclaredQueue | None:
        """Return a queue, or None."""
        item = self.table.get(named_key(self.kind, name))
        return QUEUE_RECORD.read(item) if item else None

    def every(self, *, prefix: str = "") -> Sequence[DeclaredQueue]:
        """Return all queues whose names begin so, by name, eventually consistent."""
        return list(map(QUEUE_RECORD.read, _named(self.table, self.kind, prefix)))

    def create(self, queue: DeclaredQueue) -> bool:
        """Store a new record; return whether none existed."""
        return self.table.write(Put(queue_item(queue, self.kind), IS_NEW))

    def save(self, queue: DeclaredQueue, *, replacing: DeclaredQueue) -> DeclaredQueue | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""
        stored = replace(queue, version=replacing.version + 1)
        return stored if _replaces(self.table, queue_item(stored, self.kind), replacing.version) else None

    def record_heartbeat(self, name: DeclaredName, *, now: datetime) -> DeclaredQueue | None:
        """Store a consumer heartbeat with the next version; return None if the queue is missing or being deleted."""
        item = self.table.written(
            Update(
                named_key(self.kind, name),
                sets={"consumed_at": milliseconds(now)},
                adds={"version": 1},
                condition=EXISTS & attr(IS_DELETING).not_exists(),
            )
        )
        return QUEUE_RECORD.read(item) if item else None

    def forget(self, queue: DeclaredQueue) -> bool:
        """Delete a record and its counters; return whether it was unchanged since it was read."""
        key = named_key(self.kind, queue.name)
        _delete_counters(self.table, key)
        return _is_deleted(self.table, key, queue.version)


@dataclass(frozen=True, slots=True)
class DynamoUsers:
    """`Users` over the table `Exchanges`: an item for the record, and one that maps the SenderId to the user.

    A live-only user has no second item.
    """

    table: DynamoTable

    def find(self, name: UserName) -> User | None:
        """Return a user, or None."""
        item = self.table.get(user_key(name))
        return user_of(item) if item else None

    def find_all(self, names: Iterable[UserName]) -> Mapping[UserName, User]:
        """Return those of the named users that exist."""
        keys = [user_key(name) for name in dict.fromkeys(names)]
        found = map(user_of, self.table.get_all(keys))
        return {user.name: user for user in found}

    def find_sender(self, user_id: str) -> UserName | None:
        """Return the user with an IAM unique id, `ADMINISTRATOR` for one who was noted, or None."""
        item = self.table.get(sender_key(user_id))
        return UserName(item["name"]) if item else None

    def note_administrator(self, user_id: str) -> None:
        """Store the IAM unique id of an administrator; that of a user stays."""
        self.table.write(Put(sender_key(user_id) | {"name": ADMINISTRATOR}, IS_NEW))

    def every(self) -> Sequence[User]:
        """Return the users with an IAM identity, by name, eventually consistent."""
        return [user_of(item) for item in self.table.of_kind(USER)]

    def live_only(self) -> Iterable[User]:
        """Return the users that only join realms, by name, eventually consistent."""
        return map(user_of, self.table.of_kind(LIVE_ONLY_USER))

    def put(self, user: User) -> None:
        """Store a user, replacing an older record; the older record's `user_id` is released."""
        found = self.find(user.name)
        writes: list[Write] = [Put(user_item(user))]
        if user.user_id is not None:
            writes.append(Put(sender_key(user.user_id) | {"name": user.name}))
        if found is not None and found.user_id not in (user.user_id, None):
            writes.append(Delete(sender_key(found.user_id)))
        self.table.transact(*writes)

    def put_live_only(self, users: Sequence[User]) -> None:
        """Store live-only users, 100 in a transaction; an interrupted call is completed by repeating it.

        Raises `UsersChanged` if one of them has an IAM identity: replacing that record would orphan the identity.
        """
        is_live_only = IS_NEW | attr("kind").eq(LIVE_ONLY_USER)
        for start in range(0, len(users), MAXIMUM_TRANSACTION):
            some = users[start : start + MAXIMUM_TRANSACTION]
            held = self.table.transact(*(Put(user_item(user), is_live_only) for user in some))
            taken = [str(user.name) for user, is_stored in zip(some, held, strict=True) if not is_stored]
            if taken:
                raise UsersChanged(f"users {', '.join(taken)} got an IAM identity at the same time: repeat the command")

    def remove(self, name: UserName) -> None:
        """Delete a user. Deleting a missing user has no effect."""
        found = self.find(name)
        if found is not None:
            keys = [user_key(name)] if found.user_id is None else [user_key(name), sender_key(found.user_id)]
            self.table.transact(*map(Delete, keys))


def _named(table: DynamoTable, kind: str, prefix: str) -> Iterable[Item]:
    return table.of_kind(kind, attr("pk").begins_with(named_key(kind, prefix)["pk"]))


def _delete_counters(table: DynamoTable, record: Item) -> None:
    _delete_matching(table, attr("pk").eq(record["pk"]) & attr("sk").begins_with(MINUTE))


def _delete_matching(table: DynamoTable, condition: Expression) -> None:
    table.write_all(map(Delete, table.query(condition, only=["pk", "sk"])))


def _replaces(table: DynamoTable, item: Item, version: int) -> bool:
    return table.write(Put(item, attr("version").eq(version)))


def _is_deleted(table: DynamoTable, record: Item, version: int) -> bool:
    return table.write(Delete(record, attr("version").eq(version)))
