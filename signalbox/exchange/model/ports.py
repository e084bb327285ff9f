"""What the exchange asks of the world, as Protocols named for their roles.

All of them raise `RejectedError` when AWS refuses something for good and `UnavailableError` when it may work later.
Names of queues may have a `#`, and so do patterns, but never a line feed in the former: keys made of both need one.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import (
    Binding,
    BindOutcome,
    CreatedQueue,
    DeclaredQueue,
    Exchange,
    MinuteCounts,
    QueueActivity,
    QueueSize,
    QueueSpec,
    ResourceRef,
    User,
)
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName


class Exchanges(Protocol):
    """The records of exchanges; reads see every write that was answered, and a write counts only if it may."""

    def find(self, name: ExchangeName) -> Exchange | None:
        """Return an exchange, or None."""
        ...

    def every(self) -> Sequence[Exchange]:
        """Return all exchanges, by name; a new one may be missing for a second."""
        ...

    def create(self, exchange: Exchange) -> bool:
        """Store a new record; say whether there was none."""
        ...

    def save(self, exchange: Exchange, *, replacing: Exchange) -> Exchange | None:
        """Store a changed record under the next version; None if the stored one is not as `replacing` any more."""
        ...

    def forget(self, exchange: Exchange) -> bool:
        """Delete a record and what was kept to number its messages; say whether it was still as it was read."""
        ...


class Queues(Protocol):
    """The records of declared queues, with the conditions of those of exchanges."""

    def find(self, name: DeclaredName) -> DeclaredQueue | None:
        """Return a queue, or None."""
        ...

    def every(self) -> Sequence[DeclaredQueue]:
        """Return all queues, by name; a new one may be missing for a second."""
        ...

    def create(self, queue: DeclaredQueue) -> bool:
        """Store a new record; say whether there was none."""
        ...

    def save(self, queue: DeclaredQueue, *, replacing: DeclaredQueue) -> DeclaredQueue | None:
        """Store a changed record under the next version; None if the stored one is not as `replacing` any more."""
        ...

    def record_heartbeat(self, name: DeclaredName, *, now: datetime) -> DeclaredQueue | None:
        """Note a consumer's sign of life under the next version; None if there is no such queue, or it is leaving."""
        ...

    def forget(self, queue: DeclaredQueue) -> bool:
        """Delete a record; say whether it was still as it was read."""
        ...


class Bindings(Protocol):
    """The bindings between exchanges and whatever is bound to them. Each change is one transaction."""

    def bind(self, bound: Binding) -> BindOutcome:
        """Store a binding, unless one of its two ends is not there or is leaving; say what came of it.

        One that is there already stays, and changes no version. Otherwise the exchange gets its next version, and so
        does the target if it is an exchange: who deletes it must see that somebody bound it meanwhile.
        """
        ...

    def unbind(self, bound: Binding) -> bool:
        """Remove a binding, with the same changes of versions; say whether it was there."""
        ...

    def of(self, exchange: ExchangeName) -> Sequence[Binding]:
        """Return the bindings from an exchange."""
        ...

    def to(self, target: ResourceRef) -> Sequence[Binding]:
        """Return the bindings to an exchange or a queue."""
        ...


class Users(Protocol):
    """The stage's users beside its administrators."""

    def find(self, name: UserName) -> User | None:
        """Return a user, or None."""
        ...

    def every(self) -> Sequence[User]:
        """Return all users, by name."""
        ...

    def put(self, user: User) -> None:
        """Store a user in the place of an older record; the older one's `user_id` is nobody's any more."""
        ...

    def remove(self, name: UserName) -> None:
        """Forget a user; one that is gone already is fine."""
        ...


class ExchangeQueues(Protocol):
    """The queues in SQS behind exchanges and declared queues, each with a dead-letter queue beside it."""

    def make(self, queue: QueueSpec) -> CreatedQueue:
        """Make a queue and its dead-letter queue, or make those that are there as they are to be; may come twice.

        Raises a `RejectedError` if there is a queue of that name whose tags tell of another stage or another place,
        and an `UnavailableError` while SQS still remembers a deleted queue of that name.
        """
        ...

    def delete(self, name: QueueName) -> None:
        """Delete one queue, and not the one beside it; a queue that is gone already is fine."""
        ...

    def sizes(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueSize]:
        """Return how much those of the queues hold that are there."""
        ...


class Mappings(Protocol):
    """What has the router called with the messages of exchanges."""

    def connect(self, name: QueueName) -> bool:
        """Have the router called with the messages of a queue; say whether that works already. May come twice.

        Messages wait in the queue until it does.
        """
        ...

    def disconnect(self, name: QueueName) -> None:
        """Stop it; a queue that is not connected any more, or is about to be disconnected, is fine."""
        ...


class Metrics(Protocol):
    """What SQS measured of its queues."""

    def activity(self, name: QueueName, *, since: datetime) -> QueueActivity:
        """Return what consumers did since then: the last receive that was seen, of nothing too, and the deletions."""
        ...


class Counters(Protocol):
    """What was counted of exchanges and queues."""

    def since(self, resource: ResourceRef, moment: datetime) -> Sequence[MinuteCounts]:
        """Return the minutes from the one of that moment on, oldest first; one without anything is missing."""
        ...


class Sender(Protocol):
    """Sends messages for others."""

    def send(self, queue: QueueName, message: Message) -> MessageId:
        """Send a message to a queue in SQS, and return the id that it has there."""
        ...

    def deliver(self, queue: QueueName, messages: Sequence[Message]) -> Sequence[Message]:
        """Send messages to a queue in SQS, in order; return those that were not taken."""
        ...
