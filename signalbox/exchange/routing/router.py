"""The router: sends each publication to every queue with a matching binding, or accounts for it."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from signalbox.errors import UnavailableError
from signalbox.exchange.matching.graph import MAXIMUM_BINDINGS, RoutingGraph
from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import (
    Publication,
    Rejection,
    checked_group,
    copies,
    principal_id,
    publication,
    publisher_of,
    read_publication,
)
from signalbox.exchange.model.denies import DenyReader
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.batch_report import BatchReport
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher, DispatchResult
from signalbox.exchange.routing.copy_keeper import CopyKeeper
from signalbox.exchange.routing.copy_settings import CopySettingsCache
from signalbox.exchange.routing.denied_routes import RouteDenies
from signalbox.exchange.routing.key_holds import HeldKeys, KeyHolder
from signalbox.exchange.routing.ports import (
    BatchWrites,
    CounterWriter,
    Delivery,
    HeadChange,
    Heads,
    LiveDelivery,
    NumberedPublication,
    RoutingTable,
)
from signalbox.exchange.routing.sequences import KEPT, KEPT_OF_MANY, Head, numbered
from signalbox.fifo import FifoBatch
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

Entry = Publication | Rejection
NO_POISON: Mapping[MessageId, str] = {}


class ExchangeUnknown(UnavailableError):
    """Raised when a queue's exchange is not declared; its messages stay in the queue."""


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """The result of a batch: the messages to redeliver, and the history events."""

    not_done: tuple[MessageId, ...]
    events: tuple[HistoryEvent, ...]


@dataclass(frozen=True, slots=True)
class _Numbering:
    """The numbers of a key's messages, which are valid as soon as the changed head is stored."""

    messages: Sequence[MessageId]
    change: HeadChange

    @property
    def is_stored(self) -> bool:
        """Return whether the messages had their numbers already, since they were received again."""
        return self.change.head is self.change.replacing

    @property
    def is_known(self) -> bool:
        """Return whether a message had its number already."""
        return any(one in self.change.replacing.recent for one in self.messages)

    @property
    def sequences(self) -> dict[MessageId, int]:
        """Return the number of each message."""
        return {one: self.change.head.recent[one] for one in self.messages}


@dataclass(frozen=True, slots=True)
class _Stored:
    """The publications of a batch that are in the log, and their delivery to connections."""

    published: Sequence[NumberedPublication]
    delivery: Delivery


@dataclass(slots=True)
class _BatchRouting:
    """The state of one batch. The copies of a publication are made when it is processed.

    `heads` are those of the batch's keys if they were read with the exchange. `held` are the keys that no other router
    may work on, and `numbered` the messages that had a number before.
    """

    exchange: ExchangeName
    entries: Sequence[Entry]
    heads: Mapping[RoutingKey, Head] | None
    batch: FifoBatch[Entry]
    report: BatchReport
    sequences: dict[MessageId, int] = field(default_factory=dict)
    detours: dict[RoutingKey, dict[QueueName, int]] = field(default_factory=dict)
    held: HeldKeys = field(default_factory=dict)
    numbered: set[MessageId] = field(default_factory=set)


@dataclass(slots=True)
class Router:
    """Routes batches of messages and caches compiled exchanges between calls. Not thread-safe.

    `record` takes history events; with it, the result of a batch has none. `trusted_ids` are the IAM ids of the control
    plane and of sessions, which publish on behalf of users; only those in `session_ids` add metadata of live. Of an
    exchange with more than `maximum_bindings` the router reads only the bindings that may match a batch's keys.
    `keeper` stores the copies of queues that are kept, before they are sent.
    """

    table: RoutingTable
    heads: Heads
    dispatcher: CopyDispatcher
    counters: CounterWriter
    names: StageNames
    now: Callable[[], datetime]
    trusted_ids: frozenset[str]
    maximum_bindings: int = MAXIMUM_BINDINGS
    session_ids: frozenset[str] = frozenset()
    live: LiveDelivery | None = None
    key_holder: KeyHolder | None = None
    record: Callable[[Sequence[HistoryEvent]], None] | None = None
    parallel_map: ParallelMap = serial_map
    keeper: CopyKeeper | None = None
    denies: DenyReader | None = None
    _graph: RoutingGraph = field(init=False)
    _users: dict[str, UserName] = field(default_factory=dict)
    _copy_settings: CopySettingsCache = field(init=False)

    def __post_init__(self) -> None:
        self._graph = RoutingGraph(self.maximum_bindings)
        self._copy_settings = CopySettingsCache(self.table)

    def route(
        self, messages: Sequence[Message], exchange: ExchangeName, poison: Mapping[MessageId, str] = NO_POISON
    ) -> RoutingResult:
        """Route messages of an exchange's queue. A message is done when each copy is delivered or accounted for.

        Messages in `poison` are dead-lettered unread, each with its reason. Raises `ExchangeUnknown`.
        """
        entries, heads = self._entries(messages, exchange, poison)
        if self._graph.exchange(exchange).order_by is OrderBy.PUBLISHER:
            entries = _ordered(entries, heads or {})
        sequences: dict[MessageId, int] = {}
        pairs = [(entry.message, entry) for entry in entries]
        batch = FifoBatch(pairs, is_fifo(exchange), lambda entry: _key(entry, sequences))
        work = _BatchRouting(exchange, entries, heads, batch, BatchReport(self.now()), sequences)
        work.report.count_received(messages, exchange)
        routed = self._routed(work)
        if self.key_holder is not None:
            # Messages without a number may come after those of other publishers.
            left = set(routed.not_done) & (work.numbered | work.sequences.keys())
            self.key_holder.release(exchange, work.held, done={one.message_id for one in messages} - left)
        return routed

    def _routed(self, work: _BatchRouting) -> RoutingResult:
        numberings = self._numberings(work, work.heads or {}) if work.batch.is_fifo else []
        live = self._live(work)
        stored = self._stored_at_once(work, live, numberings) if live else None
        if stored is None:
            if (holder := self._holder(work)) is not None:
                numberings = self._numberings_of_held(work, holder)
            self._save(work, numberings)
            stored = self._stored(work, live) if live else None
        tasks: list[Callable[[], None]] = []
        if live is not None and stored is not None:
            if _has_copies(work):
                self._deliver(work, stored)  # before any copy: a failure redelivers a message with all of its copies
                tasks.append(lambda: self._acknowledge(work, live))
            else:
                tasks.append(lambda: self._deliver_and_acknowledge(work, live, stored))
        while ready := work.batch.take_ready():
            self._process(ready, work)
        self._finish(work, tasks)
        return RoutingResult(work.batch.not_done(), () if self.record else tuple(work.report.events))

    def _finish(self, work: _BatchRouting, tasks: list[Callable[[], None]]) -> None:
        """Execute tasks, and at the same time store what the publications were counted and recorded as."""
        if counts := work.report.counts():
            tasks.append(lambda: self.counters.add(counts, at=work.report.at))
        if (record := self.record) is not None:
            tasks.append(lambda: record(work.report.events))
        for _ in self.parallel_map(lambda task: task(), tasks):
            pass

    def _entries(
        self, messages: Sequence[Message], exchange: ExchangeName, poison: Mapping[MessageId, str]
    ) -> tuple[list[Entry], Mapping[RoutingKey, Head] | None]:
        contents = [(message, self._content(message, poison)) for message in messages]
        keys = {content.key for _, content in contents if isinstance(content, MessageProperties)}
        senders = {principal_id(message) for message in messages} - {"", *self.trusted_ids}
        heads = self._refresh(exchange, keys, senders=senders)
        publishers = [publisher_of(message, self._users, trusted_ids=self.trusted_ids) for message in messages]
        denied = self._denied(exchange, keys, publishers)
        entries = [
            self._entry(message, content, publisher, denied)
            for (message, content), publisher in zip(contents, publishers, strict=True)
        ]
        return entries, heads

    def _content(self, message: Message, poison: Mapping[MessageId, str]) -> MessageProperties | Rejection:
        if message.message_id in poison:
            return Rejection(message, poison[message.message_id])
        return self.read(message)

    def read(self, message: Message) -> MessageProperties | Rejection:
        """Return the properties of a message, or its rejection; this depends on the message alone."""
        return read_publication(message, trusted_ids=self.trusted_ids, session_ids=self.session_ids)

    def _denied(self, exchange: ExchangeName, keys: Collection[RoutingKey], publishers: Collection[str]) -> RouteDenies:
        """Read the denies of the publishers, and of the users of all queues that may get a message."""
        realms = self._graph.realms(exchange)
        if self.denies is None or not realms:
            return RouteDenies(exchange, {}, {})
        queues = {queue for key in keys for queue in self._graph.routes(exchange, key).queues}
        owners = self._copy_settings.owners(queues, now=self.now())
        users = {user for names in (publishers, *owners.values()) for user in names}
        asked = [(realm, UserName(user)) for realm in sorted(realms) for user in sorted(users)]
        return RouteDenies(exchange, self.denies.of(asked), owners)

    def _entry(
        self, message: Message, content: MessageProperties | Rejection, publisher: str, denied: RouteDenies
    ) -> Entry:
        if isinstance(content, Rejection):
            return content
        exchange, key = denied.root, content.key
        # The control plane and sessions have checked the rights of the users that they name.
        is_checked = principal_id(message) in self.trusted_ids
        if not is_checked and denied.refuse(Right.WRITE, key, [publisher], realm=exchange):
            return Rejection(message, f"user {publisher!r} is denied to publish to this topic of {str(exchange)!r}")
        routes = denied.routes(self._graph, key, publisher)
        published = publication(message, content, routes, publisher, session_ids=self.session_ids)
        record = self._graph.exchange(exchange)
        reason = self.live.metadata_problem(published) if self.live and record.live else None
        return checked_group(published, record.order_by) if reason is None else Rejection(message, reason)

    def _refresh(
        self, root: ExchangeName, keys: Collection[RoutingKey], *, senders: Collection[str]
    ) -> Mapping[RoutingKey, Head] | None:
        """Compile the changed exchanges among those that `root` leads to; usually one read finds no change.

        The same read returns the heads of an ordered exchange.
        """
        unknown = set(senders) - self._users.keys()
        seen: set[ExchangeName] = set()
        heads: Mapping[RoutingKey, Head] | None = None
        while unseen := self._graph.reachable(root) - seen:
            if seen:
                look = self.table.snapshot(unseen, senders=())
            else:
                look = self.table.snapshot(unseen, senders=unknown, heads=(root, keys) if is_fifo(root) else None)
                heads = look.heads
            self._users.update(look.users)
            for name in unseen:
                found = look.exchanges.get(name)
                if found is None:
                    self._graph.forget(name)
                elif not self._graph.knows(found):
                    self._graph.put(found, self.table.bindings(name))
                self._complete(name, keys)
            if not seen and root not in look.exchanges:
                raise ExchangeUnknown(f"exchange {root!r} is not declared")
            seen |= unseen
        return heads

    def _complete(self, name: ExchangeName, keys: Collection[RoutingKey]) -> None:
        """Compile the bindings of a large exchange that may match keys."""
        if self._graph.missing(name, keys) and self._graph.is_full(name):
            self._graph.empty(name)
        for word in self._graph.missing(name, keys):
            self._graph.add(name, word, self.table.bindings(name, first_word=word))

    def _numberings(self, work: _BatchRouting, heads: Mapping[RoutingKey, Head]) -> list[_Numbering]:
        """Return the numbers of the publications that have not failed, of each key."""
        kept = KEPT if self._holder(work) is None else KEPT_OF_MANY
        numberings = []
        for key, found in _by_key(work.batch.unblocked()).items():
            head = heads.get(key, Head())
            numberings.append(_Numbering(found, HeadChange(key, numbered(head, found, kept=kept), head)))
        return numberings

    def _numberings_of_held(self, work: _BatchRouting, holder: KeyHolder) -> list[_Numbering]:
        """Hold the batch's keys, and return the numbers of the messages that follow no unfinished one of their key."""
        messages = _by_key(work.entries)
        work.held = holder.hold(work.exchange, messages)
        heads = self.heads.read(work.exchange, messages)  # another router may have changed them until now
        work.numbered = {one for key, found in messages.items() for one in found if one in _recent(heads, key)}
        for key in messages.keys() - work.held.keys():
            for message_id in messages[key]:
                work.batch.fail(message_id)
        while late := _late(work, heads):
            for message_id in late:
                work.batch.fail(message_id)
        return self._numberings(work, heads)

    def _save(self, work: _BatchRouting, numberings: Iterable[_Numbering]) -> None:
        """Store the heads; the messages of one that another router has changed keep no number."""
        for one in numberings:
            change = one.change
            if one.is_stored or self.heads.save(work.exchange, change.key, change.head, replacing=change.replacing):
                work.sequences |= one.sequences
                work.detours[change.key] = dict(change.replacing.detours)

    def _stored_at_once(
        self, work: _BatchRouting, live: LiveDelivery, numberings: Sequence[_Numbering]
    ) -> _Stored | None:
        """Store the heads together with the logs; return None if nothing was done.

        Heads with detours are not stored so: the transaction would make the writes of the retrier fail. Where the keys
        of a batch may be in other batches, they are held by the same transaction.
        """
        changes = [one.change for one in numberings if not one.is_stored]
        if not changes or any(one.change.replacing.detours for one in numberings):
            return None
        if (holder := self._holder(work)) is not None:
            if any(one.is_known for one in numberings):
                return None  # its key may be held
            changes = [replace(one.change, hold=holder.new_hold(one.messages)) for one in numberings]
        sequences = {message: number for one in numberings for message, number in one.sequences.items()}
        writes = BatchWrites(changes, work.report.counts(), work.report.at)
        published = _published(work, sequences)
        delivery = live.store_with(self._graph.exchange(work.exchange), published, writes)
        if delivery is None:
            return None
        if holder is not None:
            work.held = {one.change.key: one.messages for one in numberings}
        work.report.counted()
        work.sequences |= sequences
        work.detours |= {one.change.key: {} for one in numberings}
        return _Stored(published, delivery)

    def _holder(self, work: _BatchRouting) -> KeyHolder | None:
        """Return the holder of keys if other routers may work on keys of the batch at the same time."""
        is_shared = self._graph.exchange(work.exchange).order_by is OrderBy.PUBLISHER
        return self.key_holder if is_shared else None

    def _live(self, work: _BatchRouting) -> LiveDelivery | None:
        return self.live if self._graph.exchange(work.exchange).live else None

    def _stored(self, work: _BatchRouting, live: LiveDelivery) -> _Stored:
        """Store publications in the logs, except those without a number and all behind them."""
        for entry in work.entries:
            if isinstance(entry, Publication) and entry.message.message_id not in work.sequences:
                work.batch.fail(entry.message.message_id)
        published = _published(work, work.sequences)
        return _Stored(published, live.store(self._graph.exchange(work.exchange), published))

    def _deliver(self, work: _BatchRouting, stored: _Stored) -> None:
        """Deliver publications to connections; no message of a failed one's key overtakes it."""
        failed = stored.delivery()
        keys = {one.publication.properties.key for one in stored.published if _id(one) in failed}
        work.batch.recall({_id(one) for one in stored.published if one.publication.properties.key in keys})

    def _deliver_and_acknowledge(self, work: _BatchRouting, live: LiveDelivery, stored: _Stored) -> None:
        # One after the other: a publisher that waits is in order across topics, for every connection.
        self._deliver(work, stored)
        self._acknowledge(work, live)

    def _acknowledge(self, work: _BatchRouting, live: LiveDelivery) -> None:
        left = set(work.batch.not_done())
        done = [entry for entry in work.entries if isinstance(entry, Publication)]
        work.batch.recall(live.acknowledge([one for one in done if one.message.message_id not in left]))

    def _process(self, entries: Sequence[Entry], work: _BatchRouting) -> None:
        chosen: list[Copy] = []
        live = self._live(work)
        for entry in entries:
            message_id = entry.message.message_id
            if isinstance(entry, Rejection):
                self._reject(entry, work)
            elif work.batch.is_fifo and message_id not in work.sequences:
                work.batch.fail(message_id)
            else:
                work.report.add_publication(
                    entry,
                    work.exchange,
                    sequence=work.sequences.get(message_id),
                    publication_id=live.publication_id(entry) if live else None,
                )
                chosen += self._copies(entry, work)
        outcome = self._dispatched(self._kept(chosen, work), work)
        work.report.add_dispatch(outcome)
        for copy in outcome.stuck:
            work.batch.fail(copy.message_id)

    def _kept(self, chosen: Sequence[Copy], work: _BatchRouting) -> Sequence[Copy]:
        """Store the copies of kept queues; return the copies without those to retry.

        A publication of which a copy cannot be kept is received again as a whole: none of its copies is sent now.
        """
        if self.keeper is None:
            return chosen
        kept = [copy for copy in chosen if self._copy_settings.is_kept(copy.queue)]
        done = self.keeper.keep(kept, now=self.now())
        work.report.events += done.events
        for message_id in done.failed:
            work.batch.fail(message_id)
        return [copy for copy in chosen if copy.message_id not in done.failed]

    def _reject(self, rejection: Rejection, work: _BatchRouting) -> None:
        queue = self.names.queue(work.exchange)
        if self.dispatcher.dead_letter(rejection.message, next_to=queue, reason=rejection.reason):
            work.report.add_rejection(rejection, work.exchange)
        else:
            work.batch.fail(rejection.message.message_id)

    def _copies(self, publication: Publication, work: _BatchRouting) -> Iterator[Copy]:
        return copies(
            publication,
            exchange=work.exchange,
            names=self.names,
            message_ttls=self._copy_settings.message_ttls(publication.routes.queues, now=work.report.at),
            sequence=work.sequences.get(publication.message.message_id),
            now=work.report.at,
        )

    def _dispatched(self, chosen: Sequence[Copy], work: _BatchRouting) -> DispatchResult:
        """Deliver copies; send those that failed, or that must stay behind a failed one, to the retry queues."""
        direct: list[Copy] = []
        behind: list[Copy] = []
        for copy in chosen:
            (behind if self._is_detoured(copy, work) else direct).append(copy)
        outcome = self.dispatcher.deliver(direct)
        for copy in outcome.failed:
            if copy.sequence is not None and copy.keeps_order:
                self.heads.start_detour(work.exchange, copy.key, copy.destination, last=copy.sequence)
                work.detours[copy.key][copy.destination] = copy.sequence
        self.dispatcher.retry_later([*outcome.failed, *behind], outcome)
        return outcome

    def _is_detoured(self, copy: Copy, work: _BatchRouting) -> bool:
        """Return whether copies for a queue take the detour over the retry queue; if so, extend it to this copy."""
        detours = work.detours.get(copy.key, {})
        if copy.sequence is None or copy.destination not in detours:
            return False
        last = max(copy.sequence, detours[copy.destination])
        if not self.heads.extend_detour(work.exchange, copy.key, copy.destination, last=last):
            del detours[copy.destination]  # the detour ended: all of its messages were delivered
            return False
        detours[copy.destination] = last
        return True


def _ordered(entries: Sequence[Entry], heads: Mapping[RoutingKey, Head]) -> list[Entry]:
    """Return a batch in the order of its groups and of the numbers that its messages have: SQS orders only groups."""
    ordered: list[Entry] = []
    left = list(entries)
    while left:
        first = next((one for place, one in enumerate(left) if _is_first(one, left, place, heads)), left[0])
        left.remove(first)
        ordered.append(first)
    return ordered


def _is_first(entry: Entry, left: Sequence[Entry], place: int, heads: Mapping[RoutingKey, Head]) -> bool:
    """Return whether an entry is the first one of its group, and no other one of its key has a lower number."""
    if entry.message.group_id in {one.message.group_id for one in left[:place]}:
        return False
    key, number = _place(entry, heads)
    places = [_place(one, heads) for one in left]
    return key is None or number <= min(other for its_key, other in places if its_key == key)


def _place(entry: Entry, heads: Mapping[RoutingKey, Head]) -> tuple[RoutingKey | None, float]:
    """Return an entry's key and its number, which for a new message is above all others."""
    if isinstance(entry, Rejection):
        return None, math.inf
    key = entry.properties.key
    return key, _recent(heads, key).get(entry.message.message_id, math.inf)


def _key(entry: Entry, sequences: Mapping[MessageId, int]) -> str:
    """Return the key in whose order a message is processed; without a number, it is in no order."""
    message_id = entry.message.message_id
    return entry.properties.key if isinstance(entry, Publication) and message_id in sequences else message_id


def _by_key(entries: Iterable[Entry]) -> dict[RoutingKey, list[MessageId]]:
    messages: dict[RoutingKey, list[MessageId]] = {}
    for entry in entries:
        if isinstance(entry, Publication):
            messages.setdefault(entry.properties.key, []).append(entry.message.message_id)
    return messages


def _recent(heads: Mapping[RoutingKey, Head], key: RoutingKey) -> Mapping[MessageId, int]:
    return heads.get(key, Head()).recent


def _late(work: _BatchRouting, heads: Mapping[RoutingKey, Head]) -> set[MessageId]:
    """Return the messages that would overtake one with a number that this batch does not process."""
    ready = {entry.message.message_id for entry in work.batch.unblocked()}
    late: set[MessageId] = set()
    for key, waiting in work.held.items():
        numbers = _recent(heads, key)
        left = [numbers[one] for one in waiting if one in numbers and one not in ready]
        if left:
            late |= {one for one in waiting if one in ready and numbers.get(one, min(left)) >= min(left)}
    return late


def _published(work: _BatchRouting, sequences: Mapping[MessageId, int]) -> list[NumberedPublication]:
    return [
        NumberedPublication(entry, sequences[entry.message.message_id])
        for entry in work.batch.unblocked()
        if isinstance(entry, Publication)
    ]


def _has_copies(work: _BatchRouting) -> bool:
    return any(isinstance(entry, Publication) and entry.routes.queues for entry in work.entries)


def _id(one: NumberedPublication) -> MessageId:
    return one.publication.message.message_id
