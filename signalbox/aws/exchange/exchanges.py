"""The DynamoDB stores of exchange, queue and user records."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from signalbox.aws.exchange.items import (
    EXCHANGE_RECORD,
    HEAD,
    IS_DELETING,
    KEEP_SECONDS,
    LISTED_EXCHANGE,
    LIVE_ONLY_USER,
    MINUTE,
    QUEUE_RECORD,
    USER,
    arvados_key,
    listed_key,
    named_key,
    partition,
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
from signalbox.exchange.model.records import DeclaredQueue, ExchangeRecord, ListedExchange, ResourceKind, User
from signalbox.forms import Record
from signalbox.sarracenia.rights.names import ExchangeName, UserName

Stored = TypeVar("Stored", ExchangeRecord, DeclaredQueue)


class UsersChanged(Contended):
    """Raised when another command gave users an IAM identity at the same time."""


@dataclass(frozen=True, slots=True)
class _Records(Generic[Stored]):
    """The records of a kind by name, with conditional writes."""

    table: DynamoTable
    kind: str
    form: Record[Stored]

    def find(self, name: str) -> Stored | None:
        """Return a record, or None."""
        item = self.table.get(named_key(self.kind, name))
        return self.form.read(item) if item else None

    def create(self, record: Stored) -> bool:
        """Store a new record; return whether none existed."""
        return self._put(record, IS_NEW)

    def save(self, record: Stored, *, replacing: Stored) -> Stored | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""
        stored = replace(record, version=replacing.version + 1)
        is_as_read = attr("version").eq(replacing.version)
        return stored if self._put(stored, is_as_read) else None

    def forget(self, record: Stored) -> bool:
        """Delete a record and its counters; return whether it was unchanged since it was read."""
        key = named_key(self.kind, record.name)
        self.table.delete_all(attr("pk").eq(key["pk"]) & attr("sk").begins_with(MINUTE))
        is_as_read = attr("version").eq(record.version)
        return all(self.table.transact(Delete(key, is_as_read), Delete(listed_key(self.kind, record.name))))

    def _listed(self, prefix: str) -> Iterator[Item]:
        """Yield the items of the kind in the index whose names have a prefix."""
        return self.table.of_kind(self.kind, attr("pk").begins_with(named_key(self.kind, prefix)["pk"]))

    def _put(self, record: Stored, condition: Expression) -> bool:
        item = named_key(self.kind, record.name) | {"kind": str(self.kind)} | self.form.write(record)
        return self.table.write(Put(item, condition))


@dataclass(frozen=True, slots=True)
class DynamoExchanges(_Records[ExchangeRecord]):
    """`Exchanges` over the table `Exchanges`.

    A record has up to 16 KB of settings, and each change of bindings writes it. The index has a small item of it.
    """

    kind: str = ResourceKind.EXCHANGE
    form: Record[ExchangeRecord] = EXCHANGE_RECORD

    def every(self, *, prefix: str = "") -> Sequence[ListedExchange]:
        """Return all exchanges with a prefix, by name, eventually consistent."""
        return list(map(LISTED_EXCHANGE.read, self._listed(prefix)))

    def live(self) -> Sequence[ExchangeRecord]:
        """Return the records of all live exchanges, eventually consistent."""
        keys = [record_key(one.resource) for one in self.every() if one.is_live]
        return list(map(EXCHANGE_RECORD.read, self.table.get_all(keys, is_consistent=False)))

    def create(self, record: ExchangeRecord) -> bool:
        """Store a new record; return whether none existed."""
        if self.find(record.name) is None:
            # A router may have written counters after the deletion of an earlier one.
            self.table.delete_all(attr("pk").eq(partition(record.resource)) & attr("sk").begins_with(MINUTE))
        return _Records.create(self, record)

    def _put(self, record: ExchangeRecord, condition: Expression) -> bool:
        item = record_key(record.resource) | EXCHANGE_RECORD.write(record)
        listed = listed_key(self.kind, record.name) | {"kind": str(self.kind)} | LISTED_EXCHANGE.write(record.listed)
        return all(self.table.transact(Put(item, condition), Put(listed)))

    def delete_heads(self, name: ExchangeName, *, is_over: Callable[[], bool]) -> bool:
        """Delete the heads of an exchange's keys; return False if `is_over` before the last one."""
        return self.table.delete_all(attr("pk").eq(HEAD + name), is_over=is_over)

    def arvados_realm(self) -> ExchangeName | None:
        """Return the name of the exchange that was last made the realm of Arvados' clients, or None."""
        item = self.table.get(arvados_key())
        return ExchangeName(item["realm"]) if item else None

    def make_arvados_realm(self, name: ExchangeName, *, replacing: ExchangeName | None) -> bool:
        """Make an exchange the realm of Arvados' clients; return whether `replacing` was that realm until now."""
        is_as_read = IS_NEW if replacing is None else attr("realm").eq(replacing)
        return self.table.write(Put(arvados_key() | {"realm": name}, is_as_read))


@dataclass(frozen=True, slots=True)
class DynamoQueues(_Records[DeclaredQueue]):
    """`Queues` over the table `Exchanges`: the declared queues, or those of the kind `LEFT`."""

    kind: str = ResourceKind.QUEUE
    form: Record[DeclaredQueue] = QUEUE_RECORD

    def every(self, *, prefix: str = "") -> Sequence[DeclaredQueue]:
        """Return all queues with a prefix, by name, eventually consistent."""
        return list(map(QUEUE_RECORD.read, self._listed(prefix)))

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

    def mark(self, name: DeclaredName, keep_for: timedelta | None) -> bool:
        """Set or remove the mark by which the router keeps a queue's messages; return whether the queue exists.

        The version grows as with every change of the record, so that no concurrent change is lost.
        """
        sets = {} if keep_for is None else {KEEP_SECONDS: int(keep_for.total_seconds())}
        removes = [attr(KEEP_SECONDS)] if keep_for is None else []
        key = named_key(self.kind, name)
        return self.table.write(Update(key, sets=sets, removes=removes, adds={"version": 1}, condition=EXISTS))


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
        """Store an IAM unique id as that of an administrator, unless it is stored already."""
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
