"""The ports of `signalbox.exchange.model.ports` in memory, with the conditions of each write.

The suites in tests/adapters/exchange/ (test_exchanges.py, test_bindings.py) hold the memory stores and the AWS adapters
to the same behaviour.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar

from signalbox.errors import EffectFailed, EffectRefused, SignalboxError
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.connections import Connection, ConnectionCheck, Readers
from signalbox.exchange.model.events import ADMINISTRATOR
from signalbox.exchange.model.names import RETRY_MARK, dead_letter_name
from signalbox.exchange.model.ports import CreatedQueue, QueueSpec
from signalbox.exchange.model.records import (
    Binding,
    BindOutcome,
    DeclaredQueue,
    ExchangeRecord,
    ListedExchange,
    MinuteCounts,
    QueueActivity,
    QueueSize,
    ResourceKind,
    ResourceRef,
    User,
)
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName, QueueUrl
from signalbox.sarracenia.rights.names import ExchangeName, UserName

R = TypeVar("R", ExchangeRecord, DeclaredQueue)


@dataclass
class MemoryRecords(Generic[R]):
    records: dict[str, R] = field(default_factory=dict)

    def find(self, name: str) -> R | None:
        return self.records.get(name)

    def _beginning(self, prefix: str) -> list[R]:
        return [self.records[name] for name in sorted(self.records) if name.startswith(prefix)]

    def create(self, record: R) -> bool:
        return self.records.setdefault(record.name, record) is record

    def save(self, record: R, *, replacing: R) -> R | None:
        if not self._is_as_read(replacing):
            return None
        saved = self.records[record.name] = replace(record, version=replacing.version + 1)
        return saved

    def forget(self, record: R) -> bool:
        if not self._is_as_read(record):
            return False
        del self.records[record.name]
        return True

    def _is_as_read(self, record: R) -> bool:
        found = self.records.get(record.name)
        return found is not None and found.version == record.version


@dataclass
class MemoryExchanges(MemoryRecords[ExchangeRecord]):
    arvados: ExchangeName | None = None
    heads: dict[str, int] = field(default_factory=dict)  # their numbers

    def every(self, *, prefix: str = "") -> Sequence[ListedExchange]:
        return [one.listed for one in self._beginning(prefix)]

    def live(self) -> Sequence[ExchangeRecord]:
        return [one for one in self._beginning("") if one.live is not None]

    def arvados_realm(self) -> ExchangeName | None:
        return self.arvados

    def make_arvados_realm(self, name: ExchangeName, *, replacing: ExchangeName | None) -> bool:
        if self.arvados == replacing:
            self.arvados = name
        return self.arvados == name

    def delete_heads(self, name: ExchangeName, *, is_over: Callable[[], bool]) -> bool:
        left = self.heads.get(name, 0)
        while left and not is_over():
            left -= 1
        self.heads[name] = left
        return not left

    def bump(self, name: str) -> None:
        """Increase the version of a record, if it exists."""
        if name in self.records:
            self.records[name] = replace(self.records[name], version=self.records[name].version + 1)


class MemoryQueues(MemoryRecords[DeclaredQueue]):
    def every(self, *, prefix: str = "") -> Sequence[DeclaredQueue]:
        return self._beginning(prefix)

    def record_heartbeat(self, name: DeclaredName, *, now: datetime) -> DeclaredQueue | None:
        found = self.records.get(name)
        if found is None or found.is_deleting:
            return None
        return self.save(replace(found, consumed_at=now), replacing=found)


@dataclass
class MemoryBindings:
    exchanges: MemoryExchanges
    queues: MemoryQueues
    bound: dict[Binding, datetime | None] = field(default_factory=dict)

    def bind(self, bound: Binding, *, at: datetime | None = None) -> BindOutcome:
        if not self._is_there(ResourceRef(ResourceKind.EXCHANGE, bound.exchange)) or not self._is_there(bound.target):
            return BindOutcome.REFUSED
        if bound in self.bound:
            return BindOutcome.ALREADY_BOUND
        self.bound[bound] = at
        self._bump(bound)
        return BindOutcome.BOUND

    def bound_at(self, bound: Binding) -> datetime | None:
        return self.bound.get(bound)

    def unbind(self, bound: Binding) -> bool:
        if bound not in self.bound:
            return False
        del self.bound[bound]
        self._bump(bound)
        return True

    def unbind_all(self, bound: Sequence[Binding]) -> Iterator[Sequence[Binding]]:
        yield list(filter(self.unbind, bound))

    def of(self, exchange: ExchangeName, *, is_consistent: bool = True) -> Sequence[Binding]:
        return [bound for bound in self.bound if bound.exchange == exchange]

    def to(self, target: ResourceRef, *, is_consistent: bool = True) -> Sequence[Binding]:
        return [bound for bound in self.bound if bound.target == target]

    def _is_there(self, resource: ResourceRef) -> bool:
        found = (self.exchanges if resource.kind is ResourceKind.EXCHANGE else self.queues).records.get(resource.name)
        return found is not None and not found.is_deleting

    def _bump(self, bound: Binding) -> None:
        self.exchanges.bump(bound.exchange)
        if bound.target.kind is ResourceKind.EXCHANGE:
            self.exchanges.bump(bound.target.name)


@dataclass
class MemoryUsers:
    users: dict[UserName, User] = field(default_factory=dict)
    administrators: list[str] = field(default_factory=list)

    def find(self, name: UserName) -> User | None:
        return self.users.get(name)

    def find_all(self, names: Iterable[UserName]) -> Mapping[UserName, User]:
        return {name: self.users[name] for name in names if name in self.users}

    def find_sender(self, user_id: str) -> UserName | None:
        if user_id in self.administrators:
            return UserName(ADMINISTRATOR)
        return next((user.name for user in self.users.values() if user.user_id == user_id), None)

    def note_administrator(self, user_id: str) -> None:
        if self.find_sender(user_id) is None:
            self.administrators.append(user_id)

    def every(self) -> Sequence[User]:
        return [user for user in self._sorted() if not user.is_live_only]

    def live_only(self) -> Iterable[User]:
        return [user for user in self._sorted() if user.is_live_only]

    def _sorted(self) -> list[User]:
        return sorted(self.users.values(), key=lambda user: user.name)

    def put(self, user: User) -> None:
        self.users[user.name] = user

    def remove(self, name: UserName) -> None:
        self.users.pop(name, None)


@dataclass
class MemoryCounters:
    minutes: dict[ResourceRef, list[MinuteCounts]] = field(default_factory=dict)

    def since(self, resource: ResourceRef, moment: datetime) -> Sequence[MinuteCounts]:
        begins_at = moment.replace(second=0, microsecond=0)
        return [minute for minute in self.minutes.get(resource, []) if minute.begins_at >= begins_at]


@dataclass
class MemoryExchangeQueues:
    """SQS queues by name, with their sizes; `refused` maps names that cannot be created to the reason.

    `keys` are those of existing queues.
    """

    queues: dict[QueueName, QueueSpec] = field(default_factory=dict)
    keys: dict[QueueName, str] = field(default_factory=dict)
    held: dict[QueueName, QueueSize] = field(default_factory=dict)
    refused: dict[QueueName, str] = field(default_factory=dict)
    messages: dict[QueueName, Sequence[Message]] = field(default_factory=dict)

    def peek(self, name: QueueName, *, most: int) -> Sequence[Message]:
        return self.messages.get(name, ())[:most]

    def make(self, queue: QueueSpec) -> CreatedQueue:
        if queue.name in self.refused:
            raise EffectRefused(self.refused[queue.name])
        dead = dead_letter_name(queue.name)
        self.queues[dead] = replace(queue, name=dead)
        self.queues[queue.name] = queue
        return CreatedQueue(queue.name, QueueUrl(f"https://sqs/1/{queue.name}"))

    def delete(self, name: QueueName) -> None:
        self.queues.pop(name, None)
        self.held.pop(name, None)

    def sizes(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueSize]:
        return {name: self.held.get(name, QueueSize(0)) for name in names if name in self.queues}

    def key(self, name: QueueName) -> str | None:
        return self.keys.get(name)


@dataclass
class MemoryMappings:
    """The mappings of existing queues; with `is_slow`, new ones are not enabled at once. Retry queues always exist."""

    queues: MemoryExchangeQueues
    connected: set[QueueName] = field(default_factory=set)
    is_slow: bool = False
    retries: set[QueueName] = field(default_factory=set)

    def connect(self, name: QueueName) -> bool:
        if RETRY_MARK in name:
            self.retries.add(name)
            return True
        if name not in self.queues.queues:
            raise EffectFailed(f"there is no queue {name!r}")
        self.connected.add(name)
        return not self.is_slow

    def disconnect(self, name: QueueName) -> None:
        self.connected.discard(name)
        self.retries.discard(name)


@dataclass
class MemoryConnections:
    """The mappings of all functions; those in `foreign` belong to others, and calls in `failing` fail."""

    mappings: MemoryMappings
    readers: Readers
    listed: list[Connection] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    failing: dict[str, SignalboxError] = field(default_factory=dict)
    users: list[UserName] = field(default_factory=list)
    listings: int = 0

    def every(self) -> Sequence[Connection]:
        self.listings += 1
        connected = sorted(self.mappings.connected | self.mappings.retries)
        made = [Connection(f"to {queue}", queue, self.readers.router) for queue in connected]
        return [*self.listed, *made]

    def connect_user(self, user: UserName) -> None:
        if user in self.failing:
            raise self.failing[user]
        self.users.append(user)
        queue = QueueName(f"box-exchange-control-{user}")
        self.listed.append(Connection(f"of {user}", queue, self.readers.control))

    def disconnect(self, connection: Connection) -> bool:
        if connection.mapping_id in self.failing:
            raise self.failing[connection.mapping_id]
        if connection.mapping_id in self.foreign:
            return False
        self.listed.remove(connection)
        return True


@dataclass
class MemoryConnectionChecks:
    check: ConnectionCheck | None = None

    def last(self) -> ConnectionCheck | None:
        return self.check

    def record(self, check: ConnectionCheck) -> None:
        self.check = check


@dataclass
class MemoryMetrics:
    """The metrics of queues; `asked` are the queues that were queried. Those in `silent` have no values."""

    activities: dict[QueueName, QueueActivity] = field(default_factory=dict)
    asked: list[QueueName] = field(default_factory=list)
    silent: set[QueueName] = field(default_factory=set)

    def activity(self, name: QueueName, *, since: datetime) -> QueueActivity:
        self.asked.append(name)
        found = self.activities.get(name, QueueActivity(removed=None if name in self.silent else 0))
        is_lately = found.received_at is not None and found.received_at >= since
        return found if is_lately else replace(found, received_at=None)


@dataclass
class MemorySender:
    """The sent messages by queue; bodies in `not_taken` are not accepted."""

    sent: dict[QueueName, list[Message]] = field(default_factory=dict)
    not_taken: set[str] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def send(self, queue: QueueName, message: Message) -> MessageId:
        self.sent.setdefault(queue, []).append(message)
        return MessageId(f"message-{next(self.numbers)}")

    def deliver(self, queue: QueueName, messages: Sequence[Message]) -> Sequence[Message]:
        failed = [message for message in messages if message.body in self.not_taken]
        self.sent.setdefault(queue, []).extend(message for message in messages if message not in failed)
        return failed


class Killed(Exception):
    """Raised in place of a function's kill."""


@dataclass
class Killing:
    """A port that kills the function before the call with that number, counted over all ports."""

    port: object
    countdown: "Countdown"

    def __getattr__(self, name: str) -> Callable[..., object]:
        found: Callable[..., object] = getattr(self.port, name)

        def call(*arguments: object, **named: object) -> object:
            self.countdown.go_on()
            return found(*arguments, **named)

        return call


@dataclass
class Countdown:
    """The number of calls before a function is killed."""

    left: int

    def go_on(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed
