"""In-memory implementations of `signalbox.rendezvous.ports`, with the core's rules as write conditions.

The suite in tests/adapters/rendezvous/test_contract.py tests these and the AWS adapters for the same behaviour.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from signalbox.history.event import HistoryEvent
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.held_polls import HeldPoll
from signalbox.rendezvous.model.states import (
    OPEN_STATES,
    TRANSITIONS,
    Claimant,
    ClaimResult,
    ClientId,
    OfferPool,
    OfferState,
    ProxySessionId,
    Rendezvous,
    RendezvousMethod,
    is_answerable,
    is_claimable,
    is_pooled,
    offer_pool,
)
from signalbox.rendezvous.wire.nat import Nat

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


@dataclass
class MemoryOffers:
    records: dict[ClientId, Rendezvous] = field(default_factory=dict)
    matches: dict[ProxySessionId, ClientId] = field(default_factory=dict)
    pooled: set[ClientId] = field(default_factory=set)

    def find(self, client_id: ClientId) -> Rendezvous | None:
        return self.records.get(client_id)

    def open(self, record: Rendezvous, *, replacing: Rendezvous | None) -> bool:
        if self.records.get(record.client_id) != replacing:
            return False
        assert record.state in TRANSITIONS[None]
        self.records[record.client_id] = record
        self.pooled.discard(record.client_id)
        if is_pooled(record):
            self.pooled.add(record.client_id)
        return True

    def claimable(self, pools: Iterable[OfferPool], *, now: datetime) -> list[Rendezvous]:
        chosen = set(pools)
        found = [
            r
            for r in self.records.values()
            if r.state in OPEN_STATES
            and r.client_id in self.pooled
            and offer_pool(r.nat) in chosen
            and r.available_at <= now
        ]
        return sorted(found, key=lambda r: r.created_at)

    def claim(self, client_id: ClientId, *, proxy: Claimant, now: datetime, until: datetime) -> ClaimResult:
        record = self.records.get(client_id)
        if record is None or not is_claimable(record, sid=proxy.sid, now=now):
            return ClaimResult(None, is_stored=record is not None)
        self.matches[proxy.sid] = client_id
        match = self._move(
            record,
            OfferState.MATCHED,
            sid=proxy.sid,
            proxy_type=proxy.proxy_type,
            available_at=until,
            matches=record.matches + 1,
        )
        return ClaimResult(match, is_stored=True)

    def matched_by(self, sid: ProxySessionId) -> ClientId | None:
        return self.matches.get(sid)

    def answer(
        self, client_id: ClientId, *, sid: ProxySessionId, reply: str, now: datetime, leased_until: datetime
    ) -> Rendezvous | None:
        record = self.records.get(client_id)
        if record is None or not is_answerable(record, sid=sid, now=now):
            return None
        return self._finish(record, OfferState.ANSWERED, reply, leased_until)

    def close(self, client_id: ClientId, *, state: OfferState, reply: str, leased_until: datetime) -> Rendezvous | None:
        record = self.records.get(client_id)
        if record is None or record.state not in OPEN_STATES:
            return None
        return self._finish(record, state, reply, leased_until)

    def renew(self, record: Rendezvous, *, receipt_handle: str) -> bool:
        stored = self.records.get(record.client_id)
        if stored is None or stored.state not in OPEN_STATES:
            return False
        self.records[record.client_id] = replace(stored, receipt_handle=receipt_handle)
        self.pooled.add(record.client_id)
        return True

    def _finish(self, record: Rendezvous, state: OfferState, reply: str, leased_until: datetime) -> Rendezvous:
        final = self._move(record, state, reply=reply, session_description="", available_at=leased_until)
        self.records[record.client_id] = replace(final, receipt_handle=None)
        return final

    def _move(self, record: Rendezvous, state: OfferState, **changes: object) -> Rendezvous:
        assert state in TRANSITIONS[record.state], (record.state, state)
        self.records[record.client_id] = replace(record, state=state, **changes)
        return self.records[record.client_id]


@dataclass
class MemoryEndedLeases:
    """The leases in the final records of `offers`."""

    offers: MemoryOffers = field(default_factory=MemoryOffers)

    def between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        for record in sorted(self._of_sqs(), key=lambda r: r.available_at):
            if record.state not in OPEN_STATES and since <= record.available_at <= until:
                name = self._name(record)
                url = QueueUrl(f"https://queues.example/{name}")
                yield Lease(name, url, "rendezvous", record.available_at)

    def needed(self, *, now: datetime) -> AbstractSet[QueueName]:
        return {self._name(record) for record in self._of_sqs() if self._is_needed(record, now)}

    def _is_needed(self, record: Rendezvous, now: datetime) -> bool:
        if record.state in OPEN_STATES:
            return record.client_id in self.offers.pooled
        return record.available_at > now

    def _of_sqs(self) -> list[Rendezvous]:
        return [record for record in self.offers.records.values() if record.method is RendezvousMethod.SQS]

    @staticmethod
    def _name(record: Rendezvous) -> QueueName:
        return QueueName(f"snowflake-client-{record.client_id}")


@dataclass
class MemoryHeldPolls:
    slots: dict[int, HeldPoll] = field(default_factory=dict)

    def acquire(self, poll: HeldPoll, *, now: datetime) -> bool:
        holder = self.slots.get(poll.slot)
        if holder is not None and holder.until > now and holder.sid != poll.sid:
            return False
        self.slots[poll.slot] = replace(poll, offer=None)
        return True

    def reserved_offer(self, poll: HeldPoll) -> ClientId | None:
        holder = self.slots.get(poll.slot)
        return holder.offer if holder is not None and holder.sid == poll.sid else None

    def reserve(self, poll: HeldPoll, *, client_id: ClientId, until: datetime) -> bool:
        holder = self.slots.get(poll.slot)
        if holder is None or holder.sid != poll.sid or holder.offer is not None:
            return False
        self.slots[poll.slot] = replace(holder, offer=client_id, until=min(until, poll.until))
        return True

    def release(self, poll: HeldPoll) -> ClientId | None:
        holder = self.slots.get(poll.slot)
        if holder is None or holder.sid != poll.sid:
            return None
        del self.slots[poll.slot]
        return holder.offer

    def held(self, *, now: datetime) -> list[HeldPoll]:
        return [poll for poll in self.slots.values() if poll.until > now]


@dataclass
class MemoryPresence:
    polls: dict[Nat, datetime] = field(default_factory=dict)

    def record_poll(self, nat: Nat, *, now: datetime) -> None:
        self.polls[nat] = now

    def last_polls(self) -> Mapping[Nat, datetime]:
        return self.polls


@dataclass
class MemoryClientQueues:
    replies: dict[QueueUrl, list[str]] = field(default_factory=dict)

    def create(self, client_id: ClientId) -> QueueUrl:
        url = QueueUrl(f"https://queues.example/{client_id}")
        self.replies.setdefault(url, [])
        return url

    def send(self, queue_url: QueueUrl, reply: str) -> None:
        self.replies[queue_url].append(reply)

    def is_empty(self, queue_url: QueueUrl) -> bool:
        return self.replies.get(queue_url) == []


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

    def leased(self, queue_names: Sequence[QueueName]) -> AbstractSet[QueueName]:
        return self.leases.keys() & queue_names


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
