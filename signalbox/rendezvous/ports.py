"""The ports of the rendezvous core: tables, queues, statistics, telemetry and history as Protocols."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from typing import Protocol

from signalbox.history.event import HistoryEvent
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.held_polls import HeldPoll
from signalbox.rendezvous.model.states import (
    Claimant,
    ClaimResult,
    ClientId,
    OfferPool,
    OfferState,
    ProxySessionId,
    Rendezvous,
)
from signalbox.rendezvous.wire.nat import Nat


class Offers(Protocol):
    """The table of rendezvous records; every change is one conditional write."""

    def find(self, client_id: ClientId) -> Rendezvous | None:
        """Return the newest record of a client, or None."""

    def open(self, record: Rendezvous, *, replacing: Rendezvous | None) -> bool:
        """Store a new record and return True, or return False if the stored record is not `replacing`.

        The offer is in its pool at once, if it `is_pooled`.
        """

    def claimable(self, pools: Iterable[OfferPool], *, now: datetime) -> list[Rendezvous]:
        """Return a page of the open offers in these pools whose `available_at` has passed, oldest first.

        The records hold only the fields that the choice needs; `claim` returns the complete record.
        """

    def claim(self, client_id: ClientId, *, proxy: Claimant, now: datetime, until: datetime) -> ClaimResult:
        """Claim an available offer (`is_claimable`) for a proxy until `until`."""

    def matched_by(self, sid: ProxySessionId) -> ClientId | None:
        """Return the client of the newest match of a proxy session, or None."""

    def answer(
        self, client_id: ClientId, *, sid: ProxySessionId, reply: str, now: datetime, leased_until: datetime
    ) -> Rendezvous | None:
        """Store the answer to an offer and return the record, or return None if it is not `is_answerable`.

        Only the returned record contains the receipt handle, as with `close`. The client's queue, if it has one, is
        leased until `leased_until`.
        """

    def close(self, client_id: ClientId, *, state: OfferState, reply: str, leased_until: datetime) -> Rendezvous | None:
        """Move an open offer to a final state and return the record, or return None if it was already final."""

    def renew(self, record: Rendezvous, *, receipt_handle: str) -> bool:
        """Store the newest receipt handle of an open offer's message, and put the offer into its pool.

        Return False if the offer is not open.
        """


class HeldPolls(Protocol):
    """The numbered slots of held polls."""

    def acquire(self, poll: HeldPoll, *, now: datetime) -> bool:
        """Store `poll` in its slot and return True, or return False if another poll holds the slot."""

    def reserved_offer(self, poll: HeldPoll) -> ClientId | None:
        """Return the offer that is reserved for this held poll, or None."""

    def reserve(self, poll: HeldPoll, *, client_id: ClientId, until: datetime) -> bool:
        """Reserve an offer for a held poll; return False if the poll has left or already has an offer.

        At `until` the slot is free for another poll, so a poll that got its offer need not release it.
        """

    def release(self, poll: HeldPoll) -> ClientId | None:
        """Free the slot of `poll` and return the offer that was reserved for it, or None.

        After that no offer can be reserved for this poll.
        """

    def held(self, *, now: datetime) -> list[HeldPoll]:
        """Return all polls whose hold has not ended at `now`."""


class ProxyPresence(Protocol):
    """The time of the last poll of each NAT type."""

    def record_poll(self, nat: Nat, *, now: datetime) -> None:
        """Record that a proxy of this NAT type polled; the stored time may be a few seconds old."""

    def last_polls(self) -> Mapping[Nat, datetime]:
        """Return the time of the last poll by NAT type; types that never polled are missing."""


class ClientQueues(Protocol):
    """The SQS queues from which clients receive their replies."""

    def create(self, client_id: ClientId) -> QueueUrl:
        """Create the client's queue, or return the existing one."""

    def send(self, queue_url: QueueUrl, reply: str) -> None:
        """Send a reply to a client's queue; retry while SQS does not know a new queue yet."""

    def is_empty(self, queue_url: QueueUrl) -> bool:
        """Return whether no reply was ever sent to a client's queue (clients receive replies without deleting them)."""


class BrokerQueue(Protocol):
    """The queue of client offers."""

    def delete(self, receipt_handle: str) -> None:
        """Delete an offer message; do nothing if it no longer exists."""

    def hide(self, hidden: Mapping[str, timedelta]) -> None:
        """Hide messages, by receipt handle, for these times; a message that cannot be hidden is delivered earlier."""


class EndedLeases(Protocol):
    """The leases of client queues in the records of offers in a final state."""

    def between(self, since: datetime, until: datetime) -> Iterable[Lease]:
        """Return the leases that end in this period, both ends included, oldest first, read as they are needed."""

    def needed(self, *, now: datetime) -> AbstractSet[QueueName]:
        """Return the queues of clients whose offer is open and in its pool, or whose lease has not ended."""


class Leases(Protocol):
    """The leases of temporary queues that could not be deleted, by their end."""

    def put(self, lease: Lease) -> None:
        """Store or extend a lease."""

    def due(self, capability: str, *, now: datetime) -> Iterable[Lease]:
        """Return the leases of a capability that ended before `now`, oldest first, read as they are needed."""

    def end(self, lease: Lease) -> None:
        """Delete a lease."""

    def leased(self, queue_names: Sequence[QueueName]) -> AbstractSet[QueueName]:
        """Return those of the queues that have a lease."""


class Cursor(Protocol):
    """The place of a search, which may take several runs."""

    def position(self) -> int | None:
        """Return the place of the current search, or None if there is no search."""

    def save(self, position: int) -> None:
        """Store the place of the search."""

    def clear(self) -> None:
        """End the search."""


class Statistics(Protocol):
    """Counters by UTC day, and the keyed hashes of the proxies of that day."""

    def add(self, day: date, counters: Mapping[str, int]) -> None:
        """Add to the counters of a day."""

    def first_seen(self, day: date, key: str) -> bool:
        """Store a key for a day; return whether it is new on that day."""

    def key(self, day: date) -> bytes:
        """Return the secret key for the address hashes of a day; it is deleted after that day."""

    def counters(self, day: date) -> Mapping[str, int]:
        """Return the counters of a day."""


class Telemetry(Protocol):
    """The metrics of alarms and dashboards."""

    def count(self, events: Sequence[HistoryEvent]) -> None:
        """Add events to the metrics."""


class History(Protocol):
    """The event history in the data lake."""

    def write(self, events: Sequence[HistoryEvent]) -> None:
        """Write events; never raise, since a failure of history must not stop a message."""
