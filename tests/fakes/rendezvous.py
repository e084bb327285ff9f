"""In-memory implementations of `signalbox.rendezvous.ports`, with the core's rules as write conditions.

The suite in tests/adapters/rendezvous/test_contract.py tests these and the AWS adapters for the same behaviour.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from signalbox.history.event import HistoryEvent
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.pace import Pace, ProxyGroup, ProxyKind, first_pace
from signalbox.rendezvous.model.states import (
    OPEN_STATES,
    TRANSITIONS,
    ClientId,
    OfferPool,
    OfferState,
    RendezvousMethod,
    RendezvousRecord,
    is_answerable,
    is_claimable,
    offer_pool,
)
from signalbox.rendezvous.wire.proxy import ProxyPoll

PAGE_SIZE = 50  # of a pool's records, which the adapter reads at once
START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class MemoryClock:
    """A clock that advances only in `sleep`, which runs the actions that are due in that time."""

    def __init__(self) -> None:
        self.moment = START
        self.due: list[tuple[datetime, Callable[[], None]]] = []

    def now(self) -> datetime:
        return self.moment

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        self.due.append((START + timedelta(seconds=seconds), action))

    def sleep(self, seconds: float) -> None:
        end = self.moment + timedelta(seconds=seconds)
        for moment, action in sorted((d for d in self.due if d[0] <= end), key=lambda d: d[0]):
            self.due.remove((moment, action))
            self.moment = max(self.moment, moment)
            action()
        self.moment = max(self.moment, end)


Key = tuple[OfferPool, datetime, ClientId]


@dataclass
class MemoryOffers:
    records: dict[ClientId, RendezvousRecord] = field(default_factory=dict)
    """The newest record of each client, for assertions."""
    stored: dict[Key, RendezvousRecord] = field(default_factory=dict)

    def find(self, draft: RendezvousRecord) -> RendezvousRecord | None:
        return self.stored.get(_key(draft))

    def open(self, record: RendezvousRecord) -> bool:
        if _key(record) in self.stored:
            return False
        assert record.state in TRANSITIONS[None]
        self._store(record)
        return True

    def recent(self, pool: OfferPool, *, since: datetime, until: datetime) -> list[RendezvousRecord]:
        found = [r for r in self.stored.values() if offer_pool(r.nat) is pool and since <= r.created_at <= until]
        return sorted(found, key=lambda r: r.created_at, reverse=True)[:PAGE_SIZE]

    def claim(
        self, record: RendezvousRecord, *, proxy: ProxyPoll, now: datetime, until: datetime, is_busy: bool
    ) -> RendezvousRecord | None:
        stored = self.stored.get(_key(record))
        if stored is None:
            return None
        is_repeated = (stored.sid, stored.available_at) == (proxy.sid, until) and now < stored.deadline
        if not is_claimable(stored, now=now) and not (is_repeated and stored.state is OfferState.MATCHED):
            return None
        changes = {"sid": proxy.sid, "proxy_type": proxy.proxy_type, "available_at": until}
        return self._move(stored, OfferState.MATCHED, **changes, matches=stored.matches + 1)

    def matched_by(self, sid: str, *, since: datetime) -> RendezvousRecord | None:
        return next((r for r in self.stored.values() if r.sid == sid and r.created_at >= since), None)

    def answer(self, record: RendezvousRecord, *, sid: str, reply: str, now: datetime) -> RendezvousRecord | None:
        stored = self.stored.get(_key(record))
        if stored is None or not is_answerable(stored, sid=sid, now=now):
            return None
        return self._finish(replace(stored, available_at=now), OfferState.ANSWERED, reply)

    def close(self, record: RendezvousRecord, *, state: OfferState, reply: str) -> RendezvousRecord | None:
        stored = self.stored.get(_key(record))
        if stored is None or stored.state not in OPEN_STATES:
            return None
        return self._finish(stored, state, reply)

    def renew(self, record: RendezvousRecord, *, receipt_handle: str) -> None:
        stored = self.stored.get(_key(record))
        if stored is not None and stored.state in OPEN_STATES:
            self._store(replace(stored, receipt_handle=receipt_handle))

    def _finish(self, record: RendezvousRecord, state: OfferState, reply: str) -> RendezvousRecord:
        final = self._move(record, state, reply=reply, session_description="")
        self._store(replace(final, receipt_handle=None, relay_url=""))
        return final

    def _move(self, record: RendezvousRecord, state: OfferState, **changes: object) -> RendezvousRecord:
        assert state in TRANSITIONS[record.state], (record.state, state)
        return self._store(replace(record, state=state, **changes))

    def _store(self, record: RendezvousRecord) -> RendezvousRecord:
        self.stored[_key(record)] = self.records[record.client_id] = record
        return record


def _key(record: RendezvousRecord) -> Key:
    return offer_pool(record.nat), record.created_at, record.client_id


@dataclass
class MemoryQueueLeases:
    """The leases of the records of `offers`, each of which ends `kept_for` after its offer."""

    offers: MemoryOffers = field(default_factory=MemoryOffers)
    kept_for: timedelta = timedelta(seconds=150)

    def between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        return (lease for lease in self._leases() if since <= lease.due_at <= until)

    def needed(self, *, now: datetime) -> AbstractSet[QueueName]:
        return {lease.queue_name for lease in self._leases() if lease.due_at > now}

    def _leases(self) -> list[Lease]:
        of_sqs = [record for record in self.offers.stored.values() if record.method is RendezvousMethod.SQS]
        return [self._lease(record) for record in sorted(of_sqs, key=lambda r: r.created_at)]

    def _lease(self, record: RendezvousRecord) -> Lease:
        name = QueueName(f"snowflake-client-{record.client_id}")
        url = QueueUrl(f"https://queues.example/{name}")
        return Lease(name, url, "rendezvous", record.created_at + self.kept_for)


@dataclass
class MemoryPaces:
    paces: dict[ProxyGroup, Pace] = field(default_factory=dict)

    def all(self) -> Mapping[ProxyGroup, Pace]:
        return dict(self.paces)

    def add(
        self, group: ProxyGroup, polls: Mapping[ProxyKind, int], *, networks: Mapping[int, int], now: datetime
    ) -> Pace:
        pace = self.paces.get(group) or first_pace(now)
        counts, of_networks = Counter(pace.polls) + Counter(polls), Counter(pace.networks) + Counter(networks)
        self.paces[group] = replace(pace, polled_at=now, polls=counts, networks=of_networks)
        return self.paces[group]

    def replace(self, group: ProxyGroup, pace: Pace, *, replaced: Pace) -> bool:
        if self.paces[group].since != replaced.since:
            return False
        self.paces[group] = pace
        return True


@dataclass
class MemoryClientQueues:
    replies: dict[ClientId, list[str]] = field(default_factory=dict)
    messages: dict[ClientId, str] = field(default_factory=dict)

    def create(self, client_id: ClientId, *, message_id: str) -> bool:
        self.replies.setdefault(client_id, [])
        return self.messages.setdefault(client_id, message_id) == message_id

    def send(self, client_id: ClientId, reply: str) -> None:
        self.replies[client_id].append(reply)

    def is_empty(self, client_id: ClientId) -> bool:
        return self.replies.get(client_id) == []

    def delete(self, client_id: ClientId) -> None:
        self.replies.pop(client_id, None)


@dataclass
class MemoryBrokerQueue:
    deleted: list[str] = field(default_factory=list)
    hidden: dict[str, timedelta] = field(default_factory=dict)

    def delete(self, receipt_handle: str) -> None:
        self.deleted.append(receipt_handle)

    def hide(self, hidden: Mapping[str, timedelta]) -> None:
        self.hidden |= hidden


@dataclass
class MemoryLeases:
    leases: dict[QueueName, Lease] = field(default_factory=dict)

    def put(self, lease: Lease) -> None:
        self.leases[lease.queue_name] = lease

    def due(self, capability: str, *, now: datetime) -> list[Lease]:
        found = [lease for lease in self.leases.values() if lease.capability == capability and lease.due_at <= now]
        return sorted(found, key=lambda lease: lease.due_at)

    def end(self, lease: Lease) -> None:
        if self.leases.get(lease.queue_name) == lease:
            del self.leases[lease.queue_name]


@dataclass
class MemoryCursor:
    place: int | None = None

    def position(self) -> int | None:
        return self.place

    def save(self, position: int) -> None:
        self.place = position

    def clear(self) -> None:
        self.place = None


@dataclass
class MemoryStatistics:
    counted: dict[date, dict[str, int]] = field(default_factory=dict)
    seen: set[tuple[date, str]] = field(default_factory=set)

    def add(self, day: date, counters: Mapping[str, int]) -> None:
        of_day = self.counted.setdefault(day, {})
        for name, count in counters.items():
            of_day[name] = of_day.get(name, 0) + count

    def first_seen(self, day: date, key: str) -> bool:
        is_new = (day, key) not in self.seen
        self.seen.add((day, key))
        return is_new

    def key(self, day: date) -> bytes:
        return day.isoformat().encode()

    def counters(self, day: date) -> Mapping[str, int]:
        return self.counted.get(day, {})


@dataclass
class MemoryHistory:
    events: list[HistoryEvent] = field(default_factory=list)

    def write(self, events: Sequence[HistoryEvent]) -> None:
        self.events += events


@dataclass
class MemoryTelemetry:
    counted: list[HistoryEvent] = field(default_factory=list)

    def count(self, events: Sequence[HistoryEvent]) -> None:
        self.counted += events
