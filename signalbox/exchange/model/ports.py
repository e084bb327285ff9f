"""The ports of the exchange's control plane: stores, SQS queues, mappings, metrics and senders.

All of them raise `RejectedError` when AWS refuses a request permanently and `UnavailableError` when a retry may
succeed. Queue names and patterns may contain a `#`, but a queue name never contains a line feed: keys made of both use
it as the separator.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import (
    Binding,
    BindOutcome,
    DeclaredQueue,
    ExchangeRecord,
    ListedExchange,
    MinuteCounts,
    QueueActivity,
    QueueSize,
    ResourceRef,
    User,
)
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName, QueueUrl
from signalbox.sarracenia.rights.names import ExchangeName, UserName


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """The settings of an SQS queue to create; `resource` is the exchange or declared queue that it belongs to.

    SQS dead-letters a message after `maximum_receives`, or never. With `is_on_record` an existing queue is the stage's.
    """

    name: QueueName
    resource: ResourceRef
    retention: timedelta
    visibility: timedelta
    maximum_receives: int | None = None
    is_on_record: bool = False


@dataclass(frozen=True, slots=True)
class CreatedQueue:
    """An SQS queue that exists."""

    name: QueueName
    url: QueueUrl


class Exchanges(Protocol):
    """The records of exchanges. Reads are consistent, and each write is conditional."""

    def find(self, name: ExchangeName) -> ExchangeRecord | None:
        """Return an exchange, or None."""

    def every(self, *, prefix: str = "") -> Sequence[ListedExchange]:
        """Return all exchanges with a prefix, by name; a new exchange may be missing for a second."""

    def live(self) -> Sequence[ExchangeRecord]:
        """Return the records of all live exchanges; a new one may be missing for a second."""

    def create(self, exchange: ExchangeRecord) -> bool:
        """Store a new record; return whether none existed."""

    def save(self, exchange: ExchangeRecord, *, replacing: ExchangeRecord) -> ExchangeRecord | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""

    def forget(self, exchange: ExchangeRecord) -> bool:
        """Delete a record and its counters; return whether the record was unchanged since it was read."""

    def delete_heads(self, name: ExchangeName, *, is_over: Callable[[], bool]) -> bool:
        """Delete the heads of an exchange's keys; return False if `is_over` before the last one."""

    def arvados_realm(self) -> ExchangeName | None:
        """Return the name of the exchange that was last made the realm of Arvados' clients, or None."""

    def make_arvados_realm(self, name: ExchangeName, *, replacing: ExchangeName | None) -> bool:
        """Make an exchange the realm of Arvados' clients; return whether `replacing` was that realm until now."""


class Queues(Protocol):
    """The records of declared queues, with conditional writes as for exchanges."""

    def find(self, name: DeclaredName) -> DeclaredQueue | None:
        """Return a queue, or None."""

    def every(self, *, prefix: str = "") -> Sequence[DeclaredQueue]:
        """Return all queues with a prefix, by name; a new queue may be missing for a second."""

    def create(self, queue: DeclaredQueue) -> bool:
        """Store a new record; return whether none existed."""

    def save(self, queue: DeclaredQueue, *, replacing: DeclaredQueue) -> DeclaredQueue | None:
        """Store a changed record with the next version; return None if the stored one differs from `replacing`."""

    def record_heartbeat(self, name: DeclaredName, *, now: datetime) -> DeclaredQueue | None:
        """Store a consumer heartbeat with the next version; return None if the queue is missing or being deleted."""

    def forget(self, queue: DeclaredQueue) -> bool:
        """Delete a record; return whether it was unchanged since it was read."""


class Bindings(Protocol):
    """The bindings from exchanges to queues and other exchanges. Each change is one transaction."""

    def bind(self, bound: Binding, *, at: datetime | None = None) -> BindOutcome:
        """Store a binding, requested at a time, unless one of its ends is missing or being deleted; return the outcome.

        An existing binding changes no version. A new one increases the version of the exchange, and of the target if
        that is an exchange, so that a concurrent deletion fails.
        """

    def bound_at(self, bound: Binding) -> datetime | None:
        """Return when a binding was requested; None if it does not exist or its time is unknown."""

    def unbind(self, bound: Binding) -> bool:
        """Remove a binding, with the same changes of versions; return whether it existed."""

    def unbind_all(self, bound: Sequence[Binding]) -> Iterable[Sequence[Binding]]:
        """Remove different bindings, some 50 in a transaction; yield for each transaction the bindings that existed."""

    def of(self, exchange: ExchangeName, *, is_consistent: bool = True) -> Sequence[Binding]:
        """Return the bindings from an exchange."""

    def to(self, target: ResourceRef, *, is_consistent: bool = True) -> Sequence[Binding]:
        """Return the bindings to an exchange or a queue."""


class Users(Protocol):
    """The stage's users. Administrators are not among them."""

    def find(self, name: UserName) -> User | None:
        """Return a user, or None."""

    def find_all(self, names: Iterable[UserName]) -> Mapping[UserName, User]:
        """Return those of the named users that exist."""

    def find_sender(self, user_id: str) -> UserName | None:
        """Return the user with an IAM unique id, `ADMINISTRATOR` for one who was noted, or None."""

    def note_administrator(self, user_id: str) -> None:
        """Store the IAM unique id of an administrator."""

    def every(self) -> Sequence[User]:
        """Return the users with an IAM identity and a control queue, by name: without those that are live-only."""

    def live_only(self) -> Iterable[User]:
        """Return the users that only join realms, by name; there may be many thousands of them."""

    def put(self, user: User) -> None:
        """Store a user, replacing an older record; the older record's `user_id` is released."""

    def remove(self, name: UserName) -> None:
        """Delete a user. Deleting a missing user has no effect."""


class ExchangeQueues(Protocol):
    """The SQS queues of exchanges and declared queues, each with its dead-letter queue."""

    def make(self, queue: QueueSpec) -> CreatedQueue:
        """Create a queue and its dead-letter queue, or update the existing ones. Idempotent.

        Raises a `RejectedError` if the tags of an existing queue name another stage or resource, and an
        `UnavailableError` while SQS still reserves the name of a deleted queue.
        """

    def delete(self, name: QueueName) -> None:
        """Delete one queue, without its dead-letter queue. Deleting a missing queue has no effect."""

    def sizes(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueSize]:
        """Return the sizes of the queues that exist."""

    def key(self, name: QueueName) -> str | None:
        """Return the key of a queue's messages as the queue names it, "" without one, None without the queue."""

    def peek(self, name: QueueName, *, most: int) -> Iterable[Message]:
        """Yield about `most` messages of a queue, which stay in it; all of them may not fit into memory."""


class Mappings(Protocol):
    """The event source mappings that call the router with the messages of exchanges."""

    def connect(self, name: QueueName) -> bool:
        """Map a queue to the router; return whether the mapping is enabled already. Idempotent.

        Messages wait in the queue until then.
        """

    def disconnect(self, name: QueueName) -> None:
        """Delete a queue's mapping. A mapping that is missing or being deleted is left as it is."""


class Metrics(Protocol):
    """The CloudWatch metrics of SQS queues."""

    def activity(self, name: QueueName, *, since: datetime) -> QueueActivity:
        """Return the activity since a time: the last poll, including empty ones, and the number of deletions."""


class Counters(Protocol):
    """The stored counters of exchanges and queues."""

    def since(self, resource: ResourceRef, moment: datetime) -> Sequence[MinuteCounts]:
        """Return the counters from the minute of `moment` on, oldest first, without empty minutes."""


class Sender(Protocol):
    """Sends messages on behalf of users."""

    def send(self, queue: QueueName, message: Message) -> MessageId:
        """Send a message to an SQS queue; return the id that SQS assigned."""

    def deliver(self, queue: QueueName, messages: Sequence[Message]) -> Sequence[Message]:
        """Send messages to an SQS queue, in order; return those that were not accepted."""
