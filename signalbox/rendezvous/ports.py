"""What the core asks of the world, as Protocols named for their roles."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from signalbox.history.event import HistoryEvent
from signalbox.queues import Lease, QueueUrl, StrayQueue
from signalbox.rendezvous.rules.held_polls import HeldPoll
from signalbox.rendezvous.rules.states import Claim, Claimant, ClientId, Pool, ProxySessionId, Rendezvous, State
from signalbox.rendezvous.wire.nat import Nat


class Offers(Protocol):
    """The records of all rendezvous; every change is one conditional write."""

    def find(self, client_id: ClientId) -> Rendezvous | None:
        """Return the newest record of a client, or None."""
        ...

    def open(self, record: Rendezvous, *, replacing: Rendezvous | None) -> bool:
        """Store a new record unless another than `replacing` is there; say whether it was stored."""
        ...

    def claimable(self, pools: Iterable[Pool], *, now: datetime) -> list[Rendezvous]:
        """Return some of the open offers in these pools whose `available_at` has come, oldest first.

        They are records without what choosing does not need; `claim` returns the whole one.
        """
        ...

    def claim(self, client_id: ClientId, *, proxy: Claimant, now: datetime, until: datetime) -> Claim:
        """Match an offer until a moment, if it is to be had (`is_claimable`)."""
        ...

    def matched_by(self, sid: ProxySessionId) -> ClientId | None:
        """Return the client that a proxy session was last matched with, or None."""
        ...

    def answer(self, client_id: ClientId, *, sid: ProxySessionId, reply: str, now: datetime) -> Rendezvous | None:
        """Answer an offer (`is_answerable`); return the record, or None when the answer is not wanted."""
        ...

    def close(self, client_id: ClientId, *, state: State, reply: str) -> Rendezvous | None:
        """Move an open offer to a final state; return the record, or None when it was final already."""
        ...

    def renew(self, client_id: ClientId, *, receipt_handle: str) -> None:
        """Remember the newest receipt handle of an open offer's message."""
        ...


class HeldPolls(Protocol):
    """The numbered slots in which polls are held."""

    def take(self, poll: HeldPoll, *, now: datetime) -> bool:
        """Occupy the slot of `poll` if it is free; say whether it was."""
        ...

    def look(self, poll: HeldPoll) -> ClientId | None:
        """Return the offer that was shown to this held poll, if any."""
        ...

    def lend(self, poll: HeldPoll, *, client_id: ClientId) -> bool:
        """Show an offer to a held poll; say whether it is still there and was shown none yet."""
        ...

    def leave(self, poll: HeldPoll) -> ClientId | None:
        """Free the slot of `poll`, which is shown nothing from then on; return the offer that it was shown, if any."""
        ...

    def held(self, *, now: datetime) -> list[HeldPoll]:
        """Return all polls that are held now."""
        ...


class Presence(Protocol):
    """When a proxy of each NAT type polled last."""

    def note(self, nat: Nat, *, now: datetime) -> None:
        """Remember that a proxy of this NAT type polled, to within a few seconds."""
        ...

    def last_polls(self) -> Mapping[Nat, datetime]:
        """Return the last poll of each NAT type that was ever seen."""
        ...


class ClientQueues(Protocol):
    """The queues on which clients get their replies."""

    def create(self, client_id: ClientId, *, due_at: datetime) -> QueueUrl:
        """Make the client's queue, leased until `due_at`, or return the one that it has."""
        ...

    def send(self, queue_url: QueueUrl, reply: str) -> None:
        """Put a reply into a client's queue, also when that queue is so new that SQS does not know it everywhere."""
        ...

    def is_empty(self, queue_url: QueueUrl) -> bool:
        """Say whether no reply was ever put into a client's queue (clients take replies but do not delete them)."""
        ...


class BrokerQueue(Protocol):
    """The queue of offers."""

    def delete(self, receipt_handle: str) -> None:
        """Delete an offer message; one that is gone already is fine."""
        ...


class Leases(Protocol):
    """The index of temporary queues by the moment they are due."""

    def put(self, lease: Lease) -> None:
        """Store or extend a lease."""
        ...

    def due(self, capability: str, *, now: datetime) -> list[Lease]:
        """Return leases that are past their end, longest first."""
        ...

    def end(self, lease: Lease) -> None:
        """Forget a lease."""
        ...

    def is_leased(self, queue_name: str) -> bool:
        """Say whether a queue has a lease."""
        ...


class TemporaryQueues(Protocol):
    """Temporary queues as the sweep sees them."""

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; one that is gone already is fine."""
        ...

    def with_prefix(self, prefix: str) -> Iterable[StrayQueue]:
        """Yield every queue whose name starts with `prefix`, with its tags and last modification."""
        ...


class Statistics(Protocol):
    """Counters by UTC day, and who was seen that day as keyed hashes."""

    def add(self, day: date, counters: Mapping[str, int]) -> None:
        """Add to the counters of a day."""
        ...

    def first_seen(self, day: date, key: str) -> bool:
        """Remember a key for a day; say whether it is new."""
        ...

    def key(self, day: date) -> bytes:
        """Return the secret with which addresses are hashed on that day; it is forgotten afterwards."""
        ...

    def counters(self, day: date) -> Mapping[str, int]:
        """Return the counters of a day."""
        ...


class Telemetry(Protocol):
    """The metrics that alarms and dashboards look at."""

    def count(self, events: Sequence[HistoryEvent]) -> None:
        """Add events to the metrics."""
        ...


class History(Protocol):
    """The lake."""

    def write(self, events: Sequence[HistoryEvent]) -> None:
        """Write events; never raises, since history must not stop a message."""
        ...
