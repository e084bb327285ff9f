"""The router: sends each publication to every queue with a matching binding, or accounts for it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    read_publication,
)
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.routing_ports import CounterWriter, Heads, LiveDelivery, NumberedPublication, RoutingTable
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.batch_report import BatchReport
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher, DispatchResult
from signalbox.exchange.routing.key_holds import HeldKeys, KeyHolder
from signalbox.exchange.routing.message_ttls import MessageTtls
from signalbox.exchange.routing.sequences import KEPT, KEPT_OF_MANY, Head, numbered
from signalbox.fifo import FifoBatch
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName, is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, UserName

Entry = Publication | Rejection


class ExchangeUnknown(UnavailableError):
    """Raised when a queue's exchange is not declared; its messages stay in the queue."""


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """The result of a batch: the messages to redeliver, and the history events."""

    not_done: tuple[MessageId, ...]
    events: tuple[HistoryEvent, ...]


@dataclass(slots=True)
class _BatchRouting:
    """The state of one batch. The copies of a publication are made when it is processed."""

    exchange: ExchangeName
    entries: Sequence[Entry]
    batch: FifoBatch[Entry]
    report: BatchReport
    sequences: dict[MessageId, int] = field(default_factory=dict)
    detours: dict[RoutingKey, dict[QueueName, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Router:
    """Routes batches of messages and caches compiled exchanges between calls. Not thread-safe.

    `trusted_ids` are the IAM ids of the control plane and of sessions, which publish on behalf of users. Of an exchange
    with more than `maximum_bindings` the router reads only the bindings that may match a batch's keys.
    """

    table: RoutingTable
    heads: Heads
    dispatcher: CopyDispatcher
    counters: CounterWriter
    names: StageNames
    now: Callable[[], datetime]
    trusted_ids: frozenset[str]
    maximum_bindings: int = MAXIMUM_BINDINGS
    live: LiveDelivery | None = None
    key_holder: KeyHolder | None = None
    _graph: RoutingGraph = field(init=False)
    _users: dict[str, UserName] = field(default_factory=dict)
    _message_ttls: MessageTtls = field(init=False)

    def __post_init__(self) -> None:
        self._graph = RoutingGraph(self.maximum_bindings)
        self._message_ttls = MessageTtls(self.table)

    def route(self, messages: Sequence[Message], exchange: ExchangeName) -> RoutingResult:
        """Route messages of an exchange's queue. A message is done when each copy is delivered or accounted for.

        Raises `ExchangeUnknown`.
        """
        entries = self._entries(messages, exchange)
        batch = FifoBatch([(entry.message, entry) for entry in entries], is_fifo(exchange))
        work = _BatchRouting(exchange, entries, batch, BatchReport(self.now()))
        work.report.count_received(messages, exchange)
        with self._held_keys(work) as held:
            routed = self._routed(work, held.keys)
            # Messages without a number may come after those of other publishers.
            held.done = {one.message_id for one in messages} - (set(routed.not_done) & work.sequences.keys())
            return routed

    @contextmanager
    def _held_keys(self, work: _BatchRouting) -> Iterator[HeldKeys]:
        """Yield the batch's keys that no other router works on. Usually the queue's message groups ensure that."""
        messages: dict[RoutingKey, list[MessageId]] = {}
        for entry in work.entries:
            if isinstance(entry, Publication):
                messages.setdefault(entry.properties.key, []).append(entry.message.message_id)
        if self.key_holder is None or self._graph.exchange(work.exchange).order_by is not OrderBy.PUBLISHER:
            yield HeldKeys(messages.keys())
            return
        with self.key_holder.hold(work.exchange, messages) as held:
            yield held

    def _routed(self, work: _BatchRouting, keys: Collection[RoutingKey]) -> RoutingResult:
        batch = work.batch
        if batch.is_fifo:
            self._number(work, keys)
        if live := self._live(work):
            self._deliver_live(work, live)
        while ready := batch.take_ready():
            self._process(ready, work)
        if live:
            self._acknowledge(work, live)
        self.counters.add(work.report.counts(), at=work.report.at)
        return RoutingResult(batch.not_done(), tuple(work.report.events))

    def _entries(self, messages: Sequence[Message], exchange: ExchangeName) -> list[Entry]:
        contents = [(message, read_publication(message, trusted_ids=self.trusted_ids)) for message in messages]
        keys = {content.key for _, content in contents if isinstance(content, MessageProperties)}
        self._refresh(exchange, keys, senders={principal_id(message) for message in messages} - {"", *self.trusted_ids})
        return [self._entry(message, content, exchange) for message, content in contents]

    def _entry(self, message: Message, content: MessageProperties | Rejection, exchange: ExchangeName) -> Entry:
        if isinstance(content, Rejection):
            return content
        routes = self._graph.routes(exchange, content.key)
        published = publication(message, content, routes, self._users, trusted_ids=self.trusted_ids)
        return checked_group(published, self._graph.exchange(exchange).order_by)

    def _refresh(self, root: ExchangeName, keys: Collection[RoutingKey], *, senders: Collection[str]) -> None:
        """Compile the changed exchanges among those that `root` leads to; usually one read finds no change."""
        unknown = set(senders) - self._users.keys()
        seen: set[ExchangeName] = set()
        while unseen := self._graph.reachable(root) - seen:
            look = self.table.snapshot(unseen, senders=() if seen else unknown)
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

    def _complete(self, name: ExchangeName, keys: Collection[RoutingKey]) -> None:
        """Compile the bindings of a large exchange that may match keys."""
        if self._graph.missing(name, keys) and self._graph.is_full(name):
            self._graph.empty(name)
        for word in self._graph.missing(name, keys):
            self._graph.add(name, word, self.table.bindings(name, first_word=word))

    def _number(self, work: _BatchRouting, keys: Collection[RoutingKey]) -> None:
        """Assign each publication its number. Those of a key that another router holds get none and are redelivered."""
        for entry in work.entries:
            if isinstance(entry, Publication) and entry.properties.key not in keys:
                work.batch.fail(entry.message.message_id)
        messages: dict[RoutingKey, list[MessageId]] = {}
        for entry in work.batch.unblocked():
            if isinstance(entry, Publication):
                messages.setdefault(entry.properties.key, []).append(entry.message.message_id)
        heads = self.heads.read(work.exchange, messages)
        kept = KEPT_OF_MANY if self._graph.exchange(work.exchange).order_by is OrderBy.PUBLISHER else KEPT
        for key, found in messages.items():
            head = heads.get(key, Head())
            counted = numbered(head, found, kept=kept)
            if counted is head or self.heads.save(work.exchange, key, counted, replacing=head):
                work.sequences |= {one: counted.recent[one] for one in found}
                work.detours[key] = dict(head.detours)

    def _live(self, work: _BatchRouting) -> LiveDelivery | None:
        return self.live if self._graph.exchange(work.exchange).live else None

    def _deliver_live(self, work: _BatchRouting, live: LiveDelivery) -> None:
        """Deliver publications to connections, except those without a number and all behind them."""
        for entry in work.entries:
            if isinstance(entry, Publication) and entry.message.message_id not in work.sequences:
                work.batch.fail(entry.message.message_id)
        published = [
            NumberedPublication(entry, work.sequences[entry.message.message_id])
            for entry in work.batch.unblocked()
            if isinstance(entry, Publication)
        ]
        failed = live.deliver(self._graph.exchange(work.exchange), published)
        keys = {one.publication.properties.key for one in published if one.publication.message.message_id in failed}
        for one in published:  # within a key, no message overtakes another
            if one.publication.properties.key in keys:
                work.batch.fail(one.publication.message.message_id)

    def _acknowledge(self, work: _BatchRouting, live: LiveDelivery) -> None:
        left = set(work.batch.not_done())
        done = [entry for entry in work.entries if isinstance(entry, Publication)]
        work.batch.recall(live.acknowledge([one for one in done if one.message.message_id not in left]))

    def _process(self, entries: Sequence[Entry], work: _BatchRouting) -> None:
        chosen: list[Copy] = []
        is_live = self._live(work) is not None
        for entry in entries:
            message_id = entry.message.message_id
            if isinstance(entry, Rejection):
                self._reject(entry, work)
            elif work.batch.is_fifo and message_id not in work.sequences:
                work.batch.fail(message_id)
            else:
                work.report.add_publication(
                    entry, work.exchange, sequence=work.sequences.get(message_id), is_live=is_live
                )
                chosen += self._copies(entry, work)
        outcome = self._dispatched(chosen, work)
        work.report.add_dispatch(outcome)
        for copy in outcome.stuck:
            work.batch.fail(copy.message_id)

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
            message_ttls=self._message_ttls.of(publication.routes.queues, now=work.report.at),
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
