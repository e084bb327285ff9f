"""A world for routing: tables and queues in memory, in which every call may fail or be a function's last."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from signalbox.errors import EffectFailed
from signalbox.exchange.matching.graph import RoutingGraph
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication, TrustedSenders
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.denies import NoDenies
from signalbox.exchange.model.names import StageNames, dead_letter_name
from signalbox.exchange.model.patterns import FIRST_PLACE, LAST_PLACE, Pattern, place_of
from signalbox.exchange.model.records import Binding, ExchangeRecord, GroupBy, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.batch_reader import NO_POISON, BatchReader
from signalbox.exchange.routing.batch_report import Reporter, RoutingResult
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher, Patience
from signalbox.exchange.routing.copy_keeper import CopyKeeper
from signalbox.exchange.routing.copy_router import PART_COPIES, CopyRouter
from signalbox.exchange.routing.copy_settings import CopySettingsCache
from signalbox.exchange.routing.key_holds import EndingHold, KeyHolder
from signalbox.exchange.routing.limits import MOST_COPIES
from signalbox.exchange.routing.numbering import Numberer
from signalbox.exchange.routing.ports import (
    AnyCopy,
    CopySettings,
    HeadChange,
    KeysOfExchange,
    NewHold,
    RoutingSnapshot,
    SentCopy,
    WaitingChanges,
)
from signalbox.exchange.routing.refusals import Refusals
from signalbox.exchange.routing.retries import Retrier
from signalbox.exchange.routing.router import Router
from signalbox.exchange.routing.sequences import Head
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sending import Batch, Delivery, SentBatch
from tests.fakes.allowances import MemoryAllowanceCounter
from tests.fakes.kept import MemoryKeptMessages
from tests.unit.exchange.routing.naive_sqs import START, VISIBILITY, NaiveQueue

RETRIES, ORDERED_RETRIES, DEAD = QueueName("s-retries"), QueueName("s-retries.fifo"), QueueName("s-dead")
NAMES = StageNames("s")
CONTROL_ID = "AROACONTROL"
SESSION_ID = "AROASESSION"
SENDERS = TrustedSenders(CONTROL_ID, SESSION_ID)
RETENTION = timedelta(days=4)
HOLD_FOR = timedelta(seconds=VISIBILITY / 6)


class Killed(BaseException):
    """The function's time is over, in the middle of a call."""


def places_around(place: str, places: Collection[str], *, most: int = 2) -> list[str]:
    """Return the last place before a place, and the next ones from it on."""
    before = max((one for one in places if one < place), default=FIRST_PLACE)
    return [before, *[*sorted(one for one in places if one >= place), LAST_PLACE][:most]]


@dataclass
class MemoryTable:
    exchanges: dict[ExchangeName, ExchangeRecord] = field(default_factory=dict)
    bound: list[Binding] = field(default_factory=list)
    queues: dict[DeclaredName, datetime] = field(default_factory=dict)
    users: dict[str, UserName] = field(default_factory=dict)
    times_to_live: dict[DeclaredName, timedelta] = field(default_factory=dict)
    kept: set[DeclaredName] = field(default_factory=set)
    owners: dict[DeclaredName, UserName] = field(default_factory=dict)
    looks: list[tuple[set[ExchangeName], set[str]]] = field(default_factory=list)
    heads: "MemoryHeads | None" = None
    groups: dict[DeclaredName, GroupBy] = field(default_factory=dict)
    readings: list[str] = field(default_factory=list)
    waiting: dict[DeclaredName, Counter[int]] = field(default_factory=dict)
    is_throttled: bool = False

    def snapshot(
        self, exchanges: Iterable[ExchangeName], *, senders: Iterable[str], heads: KeysOfExchange | None = None
    ) -> RoutingSnapshot:
        wanted, unknown = set(exchanges), set(senders)
        self.looks.append((wanted, unknown))
        users = {sender: self.users[sender] for sender in unknown if sender in self.users}
        found = {name: one for name, one in self.exchanges.items() if name in wanted}
        read = None if heads is None or self.heads is None else self.heads.read(*heads)
        return RoutingSnapshot(found, users, read)

    def bindings(self, exchange: ExchangeName, *, first_word: str | None = None) -> Iterable[Binding]:
        self.readings.append(exchange if first_word is None else f"{exchange}: {first_word}")
        for bound in self.bound:
            begins_with = bound.pattern.words[0] if bound.pattern.words else ""
            if bound.exchange == exchange and first_word in (None, begins_with):
                yield bound

    def first_words(self, exchange: ExchangeName, *, around: str) -> Sequence[str]:
        self.readings.append(f"{exchange}: first words around {around!r}")
        words = {place_of("".join(one.pattern.words[:1])) for one in self.bound if one.exchange == exchange}
        return places_around(around, words)

    def copy_settings(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, CopySettings]:
        return {
            one: CopySettings(
                self.times_to_live.get(one),
                one in self.kept,
                self.owners.get(one),
                self.groups.get(one, GroupBy.PUBLISHER),
            )
            for one in queues
            if one in self.times_to_live.keys() | self.kept | self.owners.keys() | self.groups.keys()
        }

    def created_at(self, queue: DeclaredName) -> datetime | None:
        return self.queues.get(queue)

    def add_waiting(self, owner: DeclaredName, changes: WaitingChanges, *, now: datetime) -> Mapping[int, int] | None:
        if self.is_throttled:
            return None
        shares = self.waiting.setdefault(owner, Counter())
        for (_, share), number in changes.items():
            shares[share] += number
        return dict(shares)

    def declare(self, name: str, *, alternate: str | None = None) -> None:
        made = ExchangeRecord(ExchangeName(name), None, START, ExchangeName(alternate) if alternate else None)
        self.exchanges[made.name] = made

    def bind(self, exchange: str, pattern: str, *, queue: str | None = None, to: str | None = None) -> None:
        target = ResourceRef(ResourceKind.QUEUE, queue) if queue else ResourceRef(ResourceKind.EXCHANGE, to or "")
        self.bound.append(Binding(ExchangeName(exchange), target, Pattern.stored(pattern)))
        self._next_version(exchange)

    def unbind(self, exchange: str, pattern: str, target: str) -> None:
        kind = ResourceKind.EXCHANGE if target.startswith("x") else ResourceKind.QUEUE
        self.bound.remove(Binding(ExchangeName(exchange), ResourceRef(kind, target), Pattern.stored(pattern)))
        self._next_version(exchange)

    def set_alternate(self, exchange: str, alternate: str | None) -> None:
        found = self.exchanges[ExchangeName(exchange)]
        self.exchanges[found.name] = replace(found, alternate=ExchangeName(alternate) if alternate else None)
        self._next_version(exchange)

    def _next_version(self, exchange: str) -> None:
        name = ExchangeName(exchange)
        self.exchanges[name] = replace(self.exchanges[name], version=self.exchanges[name].version + 1)


@dataclass
class MemoryKeyHolds:
    held: dict[tuple[ExchangeName, RoutingKey], tuple[list[MessageId], datetime]] = field(default_factory=dict)

    def hold(
        self,
        exchange: ExchangeName,
        key: RoutingKey,
        *,
        messages: Sequence[MessageId],
        now: datetime,
        until: datetime,
    ) -> Sequence[MessageId] | None:
        waiting, end = self.held.get((exchange, key), ([], now))
        if end <= now:
            waiting = []
        if waiting and waiting[0] not in messages:
            return None
        found = list(dict.fromkeys([*waiting, *messages]))
        self.held[exchange, key] = found, end if waiting else until
        return found

    def release(self, exchange: ExchangeName, holds: Sequence[EndingHold]) -> None:
        for one in holds:
            waiting, end = self.held.get((exchange, one.key), ([], None))
            if waiting != one.held or end is None:
                continue
            self.held[exchange, one.key] = list(one.left), end
            if not one.left:
                del self.held[exchange, one.key]

    def can_replace(self, exchange: ExchangeName, key: RoutingKey, hold: NewHold) -> bool:
        """Return whether a hold can be stored with a head."""
        waiting, end = self.held.get((exchange, key), ([], hold.now))
        return waiting == hold.replacing if hold.replacing else end <= hold.now

    def put(self, exchange: ExchangeName, key: RoutingKey, hold: NewHold) -> None:
        """Store a hold with a head."""
        self.held[exchange, key] = list(hold.messages), hold.until


@dataclass
class MemoryHeads:
    heads: dict[tuple[ExchangeName, RoutingKey], Head] = field(default_factory=dict)
    holds: MemoryKeyHolds = field(default_factory=MemoryKeyHolds)
    ends: dict[tuple[ExchangeName, RoutingKey], datetime | None] = field(default_factory=dict)
    is_throttled: bool = False

    def end(self, *, now: datetime) -> None:
        """Delete the heads that have ended."""
        for key in [key for key, end in self.ends.items() if end is not None and end <= now]:
            del self.heads[key], self.ends[key]

    def read(self, exchange: ExchangeName, keys: Iterable[RoutingKey]) -> Mapping[RoutingKey, Head]:
        return {key: self.heads[exchange, key] for key in keys if (exchange, key) in self.heads}

    def save(self, exchange: ExchangeName, change: HeadChange) -> bool:
        key, hold, stored = change.key, change.hold, self._of(exchange, change.key)
        if self.is_throttled:
            return False
        if stored.sequence != change.replacing.sequence or (hold and not self.holds.can_replace(exchange, key, hold)):
            return False
        self.heads[exchange, key] = replace(change.head, detours=stored.detours)
        self.ends[exchange, key] = change.expires_at
        if hold is not None:
            self.holds.put(exchange, key, hold)
        return True

    def start_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        self._put(exchange, key, {**self._of(exchange, key).detours, queue: last})

    def extend_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> bool:
        detours = self._of(exchange, key).detours
        if queue not in detours:
            return False
        self._put(exchange, key, {**detours, queue: last})
        return True

    def end_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        detours = dict(self._of(exchange, key).detours)
        if detours.get(queue) == last:
            del detours[queue]
            self._put(exchange, key, detours)

    def _of(self, exchange: ExchangeName, key: RoutingKey) -> Head:
        return self.heads.get((exchange, key), Head())

    def _put(self, exchange: ExchangeName, key: RoutingKey, detours: Mapping[QueueName, int]) -> None:
        self.heads[exchange, key] = replace(self._of(exchange, key), detours=detours)


@dataclass
class MemoryCounterWriter:
    counts: dict[ResourceRef, Counter[str]] = field(default_factory=dict)

    def add(self, counts: Mapping[ResourceRef, Mapping[str, int]], *, at: datetime) -> None:
        for resource, counted in counts.items():
            self.counts.setdefault(resource, Counter()).update(counted)

    def of_queue(self, name: str) -> dict[str, int]:
        return dict(self.counts[ResourceRef(ResourceKind.QUEUE, name)])

    def of_exchange(self, name: str) -> dict[str, int]:
        return dict(self.counts[ResourceRef(ResourceKind.EXCHANGE, name)])


@dataclass
class MemorySentCopies:
    copies: set[tuple[MessageId, str]] = field(default_factory=set)

    def add(self, copies: Iterable[SentCopy], *, now: datetime) -> None:
        for copy in copies:
            self.copies.add((copy.message_id, copy.destination))

    def left(self, copies: Sequence[AnyCopy]) -> Sequence[AnyCopy]:
        return [one for one in copies if one.attempt == 1 or (one.message_id, one.destination) not in self.copies]


def copy_id(publication: MessageId, queue: QueueName) -> MessageId:
    """Return the id of a publication's copy in a queue."""
    return MessageId(f"{publication} in {queue}")


@dataclass
class NaiveSqs:
    """Queues, of which some are faulty.

    A `closed` queue accepts nothing, a `denied` one by its policy, a `throttled` one since SQS throttles it, and SQS
    does not know a `missing` one; a `deaf` one neither accepts nor answers; a `half` open one accepts every other
    message. No queue accepts a body in `refused`.
    """

    now: Callable[[], datetime] = lambda: START
    queues: dict[QueueName, NaiveQueue] = field(default_factory=dict)
    trouble: dict[QueueName, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    calls: list[tuple[QueueName, int]] = field(default_factory=list)
    sent: int = 0

    def make(self, *names: QueueName) -> None:
        self.queues |= {name: NaiveQueue(name) for name in names}

    def send(self, batch: Batch) -> SentBatch:
        assert 1 <= len(batch.deliveries) <= 10
        self.calls.append((batch.destination, len(batch.deliveries)))
        trouble = self.trouble.get(batch.destination)
        if trouble == "deaf":
            raise EffectFailed("no answer")
        failed = [
            (one, reason) for one in batch.deliveries if (reason := self._problem(batch, one, trouble)) != "taken"
        ]
        taken = [one for one in batch.deliveries if one not in [delivery for delivery, _ in failed]]
        ids = {one.message.message_id: copy_id(one.message.message_id, batch.destination) for one in taken}
        return SentBatch(
            failed,
            ids,
            is_queue_missing=trouble == "missing",
            is_denied=trouble == "denied",
            problem=trouble,
        )

    def _problem(self, batch: Batch, delivery: Delivery, trouble: str | None) -> str | None:
        self.sent += 1
        if (
            batch.destination not in self.queues
            or trouble in ("closed", "denied", "missing", "throttled")
            or (trouble == "half" and self.sent % 2)
        ):
            return None
        if delivery.message.body in self.refused and "Reason" not in delivery.message.attributes:
            return self.refused[delivery.message.body]
        self.queues[batch.destination].send(delivery.message, sent_at=self.now())
        return "taken"


@dataclass
class World:
    """All tables, queues and functions."""

    maximum_words: int = 100
    moment: float = 0.0
    table: MemoryTable = field(default_factory=MemoryTable)
    counters: MemoryCounterWriter = field(default_factory=MemoryCounterWriter)
    routed: list[RoutingResult] = field(default_factory=list)
    live: Any = None
    denies: Any = field(default_factory=NoDenies)
    kept: MemoryKeptMessages = field(default_factory=MemoryKeptMessages)
    record: Callable[[Sequence[HistoryEvent]], None] | None = None
    is_late: bool = False
    limited: set[str] = field(default_factory=set)
    written: Counter[str] = field(default_factory=Counter)
    part_copies: int = PART_COPIES
    retrying: int = 100_000
    """The messages in the retry queues."""

    def __post_init__(self) -> None:
        self.holds = MemoryKeyHolds()
        self.heads, self.sqs = MemoryHeads(holds=self.holds), NaiveSqs(self.now)
        self.table.heads, self.sent = self.heads, MemorySentCopies()
        self.sqs.make(RETRIES, ORDERED_RETRIES, DEAD)
        self.refusals = Refusals(self.table, self.now, lambda: self.retrying)
        self.allowance = MemoryAllowanceCounter().instance(MOST_COPIES)
        self.dispatcher = CopyDispatcher(
            self.sqs, self.table, self.refusals, RETRIES, ORDERED_RETRIES, DEAD, lambda: range(1)
        )
        self.routers = [self.router(), self.router()]
        patience = Patience(timedelta(seconds=VISIBILITY), RETENTION, self.now)
        self.retrier = Retrier(self.heads, self.dispatcher, self.refusals, self.counters, NAMES, patience, self.now)

    def router(self) -> Router:
        copy_settings = CopySettingsCache(self.table)
        return Router(
            BatchReader(
                self.table,
                copy_settings,
                self.denies,
                SENDERS,
                self._metadata_problem,
                self.now,
                RoutingGraph(self.maximum_words, self.maximum_words),
            ),
            Numberer(self.heads, KeyHolder(self.holds, self.now, self.sleep, HOLD_FOR, RETENTION)),
            self.live,
            CopyRouter(
                self.dispatcher,
                self.refusals,
                self.allowance,
                CopyKeeper(self.kept),
                copy_settings,
                NAMES,
                self.now,
                self.sent,
                lambda: self.is_late,
                part_copies=self.part_copies,
            ),
            Reporter(self.counters, record=self.record),
            self.admits,
        )

    def admits(self, publisher: str, heads: int) -> bool:
        """Return whether messages of a publisher may change heads."""
        self.written[publisher] += heads
        return publisher not in self.limited

    def _metadata_problem(self, publication: Publication) -> str | None:
        return self.live.metadata_problem(publication)

    def use(self, **parts: object) -> Router:
        """Use other parts in all routers; return the first one."""
        for name, part in parts.items():
            setattr(self, name, part)
        self.routers = [self.router() for _ in self.routers]
        return self.routers[0]

    def sleep(self, seconds: float) -> None:
        self.moment += seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.moment)

    def declare(self, exchange: str, *, alternate: str | None = None) -> None:
        self.table.declare(exchange, alternate=alternate)
        name = NAMES.queue(exchange)
        self.sqs.make(name, dead_letter_name(name))

    def bind(self, exchange: str, pattern: str, *, queue: str | None = None, to: str | None = None) -> None:
        self.table.bind(exchange, pattern, queue=queue, to=to)
        if queue and queue not in self.table.queues:
            self.table.queues[DeclaredName(queue)] = self.now()
            name = NAMES.queue(queue)
            self.sqs.make(name, dead_letter_name(name))

    def delete(self, queue: str) -> None:
        del self.table.queues[DeclaredName(queue)]
        del self.sqs.queues[NAMES.queue(queue)]

    def publish(self, exchange: str, key: str, body: str = "body", *, sender: str = "AIDA", **headers: str) -> None:
        is_ordered = exchange.endswith(".fifo")
        queue = self.sqs.queues[NAMES.queue(exchange)]
        deduplication_id = f"d-{queue.count}" if is_ordered else None
        message = MessageProperties.of_publication(key, body, headers).published(deduplication_id=deduplication_id)
        queue.send(message, sender=sender)

    def route(
        self, exchange: str, *, number: int = 10, router: int = 0, poison: Mapping[MessageId, str] = NO_POISON
    ) -> RoutingResult:
        """Route a batch, as Lambda does: delete the messages that are not reported."""
        return self._handle(
            NAMES.queue(exchange),
            lambda messages: self.routers[router].route(messages, ExchangeName(exchange), poison),
            number=number,
        )

    def retry(
        self, *, is_ordered: bool = False, number: int = 10, poison: Mapping[MessageId, str] = NO_POISON
    ) -> RoutingResult:
        """Call the retrier with a batch."""
        return self._handle(
            ORDERED_RETRIES if is_ordered else RETRIES,
            lambda messages: self.retrier.retry(messages, is_ordered=is_ordered, poison=poison),
            number=number,
        )

    def _handle(
        self, name: QueueName, handle: Callable[[Sequence[Message]], RoutingResult], *, number: int
    ) -> RoutingResult:
        queue = self.sqs.queues[name]
        entries = queue.receive(number, now=self.moment)
        if not entries:
            return RoutingResult((), ())
        routed = handle([entry.message for entry in entries])
        self.refusals.write_due()
        for entry in entries:
            if entry.message.message_id not in routed.not_done:
                queue.delete(entry)
            elif pause := routed.pauses.get(entry.message.message_id):
                entry.invisible_until = self.moment + pause.total_seconds()
        self.routed.append(routed)
        return routed

    def messages(self, queue: str) -> list[Message]:
        return self.sqs.queues[NAMES.queue(queue)].messages()

    def bodies(self, queue: str) -> list[str]:
        return [message.body for message in self.messages(queue)]
