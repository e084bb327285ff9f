"""The ports of the rendezvous core: tables, queues, statistics, telemetry and history as Protocols."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from typing import Protocol

from signalbox.history.event import HistoryEvent
from signalbox.queues import Lease, QueueName
from signalbox.rendezvous.model.pace import Pace, Paces, ProxyGroup, ProxyKind
from signalbox.rendezvous.model.states import (
    ClientId,
    OfferPool,
    OfferState,
    RendezvousRecord,
)
from signalbox.rendezvous.wire.proxy import ProxyPoll


class Offers(Protocol):
    """The table of rendezvous records, a partition for each pool; every change is one conditional write.

    A record is found by its pool, the time it was sent and its client.
    """

    def find(self, draft: RendezvousRecord) -> RendezvousRecord | None:
        """Return the stored record with the key of `draft`, or None."""

    def open(self, record: RendezvousRecord) -> bool:
        """Store a new record and return True, or return False if there is one with its key."""

    def recent(self, pool: OfferPool, *, since: datetime, until: datetime) -> list[RendezvousRecord]:
        """Return the newest records of a pool that were sent in a period, whatever their state, newest first.

        They may be a moment old, and hold only the fields that the choice needs; `claim` returns the complete record.
        """

    def claim(
        self, record: RendezvousRecord, *, proxy: ProxyPoll, now: datetime, until: datetime, is_busy: bool
    ) -> RendezvousRecord | None:
        """Claim an offer for a proxy until `until`; return the record, or None if it is not `is_claimable`.

        A repeated claim returns the same record. `is_busy` is whether the pool has more than `BUSY_RECORDS`.
        """

    def matched_by(self, sid: str, *, since: datetime) -> RendezvousRecord | None:
        """Return the record, sent since a time, that is matched with a proxy session, or None."""

    def answer(self, record: RendezvousRecord, *, sid: str, reply: str, now: datetime) -> RendezvousRecord | None:
        """Store the answer to an offer and return the record, or return None if it is not `is_answerable`.

        Only the returned record contains the receipt handle, as with `close`.
        """

    def close(self, record: RendezvousRecord, *, state: OfferState, reply: str) -> RendezvousRecord | None:
        """Move an open offer to a final state and return the record, or return None if it was already final."""

    def renew(self, record: RendezvousRecord, *, receipt_handle: str) -> None:
        """Store the newest receipt handle of an offer's message, which `answer` returns with the record."""


class ProxyPaces(Protocol):
    """The stored paces of the groups of proxies."""

    def all(self) -> Paces:
        """Return the pace of each group; groups that never polled are missing."""

    def add(
        self, group: ProxyGroup, polls: Mapping[ProxyKind, int], *, networks: Mapping[int, int], now: datetime
    ) -> Pace:
        """Add polls, and the same by network group, to a group and return its pace; the first poll makes it."""

    def replace(self, group: ProxyGroup, pace: Pace, *, replaced: Pace) -> bool:
        """Store a new pace and return True, or return False if another instance replaced `replaced` before."""


class ClientQueues(Protocol):
    """The SQS queues from which clients receive their replies."""

    def create(self, client_id: ClientId, *, message_id: str) -> bool:
        """Create the client's queue for an offer message; return False if the queue is that of another message.

        Return True if the queue of this message exists already.
        """

    def send(self, client_id: ClientId, reply: str) -> None:
        """Send a reply to a client's queue; retry while SQS does not know a new queue yet."""

    def is_empty(self, client_id: ClientId) -> bool:
        """Return whether no reply was ever sent to a client's queue (clients receive replies without deleting them)."""

    def delete(self, client_id: ClientId) -> None:
        """Delete a client's queue; do nothing if it no longer exists."""


class UpstreamBroker(Protocol):
    """A Snowflake broker that finds the proxies."""

    def reply(self, body: bytes) -> str:
        """Return the reply to an offer: the broker's own, or the error for the client if the broker has none."""


class BrokerQueue(Protocol):
    """The queue of client offers."""

    def delete(self, receipt_handle: str) -> None:
        """Delete an offer message; do nothing if it no longer exists."""

    def hide(self, hidden: Mapping[str, timedelta]) -> None:
        """Hide messages, by receipt handle, for these times; a message that cannot be hidden is delivered earlier."""


class QueueLeases(Protocol):
    """The leases of client queues: each ends a fixed time after its offer was sent."""

    def between(self, since: datetime, until: datetime) -> Iterable[Lease]:
        """Return the leases that end in this period, both ends included, oldest first, read as they are needed."""

    def needed(self, *, now: datetime) -> AbstractSet[QueueName]:
        """Return the queues whose lease has not ended."""


class Leases(Protocol):
    """The leases of temporary queues that could not be deleted, by their end."""

    def put(self, lease: Lease) -> None:
        """Store or extend a lease."""

    def due(self, capability: str, *, now: datetime) -> Iterable[Lease]:
        """Return the leases of a capability that ended before `now`, oldest first, read as they are needed."""

    def end(self, lease: Lease) -> None:
        """Delete a lease."""


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
