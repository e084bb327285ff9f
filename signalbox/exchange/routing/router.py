"""The router: sends each publication to every queue with a matching binding, or accounts for it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.routing.batch_reader import NO_POISON, BatchReader, Entry, ReadBatch
from signalbox.exchange.routing.batch_report import BatchReport, Reporter, RoutingResult
from signalbox.exchange.routing.copy_router import CopyRouter, Detours, RoutedEntries
from signalbox.exchange.routing.numbering import BatchNumbers, Numberer
from signalbox.exchange.routing.ports import Delivery, LiveDelivery, NumberedPublication, SentCopy
from signalbox.fifo import FifoBatch
from signalbox.messages import Message, MessageId
from signalbox.sarracenia.rights.names import ExchangeName

LEFT_FOR = timedelta(seconds=10)  # the period of the limit of heads


@dataclass(frozen=True, slots=True)
class _Logged:
    """The publications of a batch that are in the log, their numbers, and their delivery to connections."""

    numbers: BatchNumbers
    published: Sequence[NumberedPublication]
    deliver: Delivery


@dataclass(frozen=True, slots=True)
class Router:
    """Routes batches of messages, one way for each kind of exchange. Not thread-safe.

    `admits` counts heads that messages of a publisher are to change, each with a write, and returns whether that many
    may be changed now; exchanges with a log do not use it. Without `live`, as on a stage without that capability, a
    live exchange is an ordered one.
    """

    reader: BatchReader
    numberer: Numberer
    live: LiveDelivery | None
    copies: CopyRouter
    reporter: Reporter
    admits: Callable[[str, int], bool]

    def route(
        self, messages: Sequence[Message], exchange: ExchangeName, poison: Mapping[MessageId, str] = NO_POISON
    ) -> RoutingResult:
        """Route messages of an exchange's queue. A message is done when each copy is delivered or accounted for.

        Messages in `poison` are dead-lettered unread, each with its reason. Raises `ExchangeUnknown`.
        """
        batch = self.reader.read(messages, exchange, poison)
        if self.live is not None and batch.exchange.live is not None:
            return self._route_live(batch, self.live)
        if batch.exchange.order_by is not None:
            return self._route_ordered(batch)
        return self._route_standard(batch)

    def _route_standard(self, batch: ReadBatch) -> RoutingResult:
        """Copy all publications at once."""
        numbers, work = BatchNumbers(), FifoBatch([(entry.message, entry) for entry in batch.entries], is_fifo=False)
        routed = self._copied(work, batch, numbers)
        return self._finish(self.reporter.report(batch, routed, sequences={}), work, routed)

    def _route_ordered(self, batch: ReadBatch) -> RoutingResult:
        """Store the numbers of publications, and copy them in the order of each key."""
        batch, left = batch.without(self._not_admitted(batch))
        numbers = self.numberer.number(batch)
        pauses = dict.fromkeys([*left, *numbers.lacking(batch.entries)], LEFT_FOR)
        work = numbers.fifo_batch(batch.entries)
        routed = self._copied(work, batch, numbers)
        result = self._finish(self.reporter.report(batch, routed, sequences=numbers.sequences), work, routed)
        self._release(batch, numbers, result)
        return replace(result, not_done=(*result.not_done, *left), pauses=pauses)

    def _not_admitted(self, batch: ReadBatch) -> list[MessageId]:
        """Return the new messages of publishers whose messages have changed as many heads as one's may."""
        new = [one for one in batch.new if one.properties.key not in batch.idle_keys]
        heads = Counter(publisher for publisher, _ in {(one.publisher, one.properties.key) for one in new})
        refused = {publisher for publisher, number in heads.items() if not self.admits(publisher, number)}
        return [one.message.message_id for one in new if one.publisher in refused]

    def _route_live(self, batch: ReadBatch, live: LiveDelivery) -> RoutingResult:
        """Store numbers and logs of publications, deliver them to connections, copy and acknowledge them."""
        batch = batch.rejecting(live.refused(batch.exchange, batch.new))
        logged = self._logged_at_once(batch, live) or self._logged(batch, live)
        work, sent = logged.numbers.fifo_batch(batch.entries), list[SentCopy]()
        if any(isinstance(entry, Publication) and entry.routes.queues for entry in batch.entries):
            _deliver(logged, work, sent)  # before any copy: a failure redelivers a message with all of its copies
            last = partial(_acknowledge, live, batch, work)
        else:
            last = partial(_deliver_and_acknowledge, live, logged, batch, work, sent)
        routed = self._copied(work, batch, logged.numbers)
        report = self.reporter.report(
            batch,
            routed,
            sequences=logged.numbers.sequences,
            publication_id=live.publication_id,
        )
        result = self._finish(report, work, routed, last, delivered=sent)
        self._release(batch, logged.numbers, result)
        return result

    def _logged_at_once(self, batch: ReadBatch, live: LiveDelivery) -> _Logged | None:
        """Store the heads together with the logs; return None if no publication was stored."""
        planned = self.numberer.plan(batch)
        if planned is None:
            return None
        published = _published(batch.entries, planned.numbers)
        delivery = live.store_with(batch.exchange, published, planned.changes)
        return None if delivery is None else _Logged(planned.numbers, published, delivery)

    def _logged(self, batch: ReadBatch, live: LiveDelivery) -> _Logged:
        """Store the heads, and then publications in the logs, except those without a number and all behind them."""
        numbers = self.numberer.number(batch)
        published = _published(numbers.fifo_batch(batch.entries).unblocked(), numbers)
        return _Logged(numbers, published, live.store(batch.exchange, published))

    def _copied(self, work: FifoBatch[Entry], batch: ReadBatch, numbers: BatchNumbers) -> list[RoutedEntries]:
        """Copy publications as soon as they may be sent; return their outcomes."""
        name, detours = batch.exchange.name, Detours(self.numberer.heads, numbers.detours)
        outcomes = []
        while ready := work.take_ready():
            routed = self.copies.route(ready, name, sequences=numbers.sequences, detours=detours, at=batch.read_at)
            outcomes.append(routed)
            for message_id in routed.failed:
                work.fail(message_id)
        return outcomes

    def _finish(
        self,
        report: BatchReport,
        work: FifoBatch[Entry],
        routed: Sequence[RoutedEntries],
        *tasks: Callable[[], None],
        delivered: Sequence[SentCopy] = (),
    ) -> RoutingResult:
        """Store the report of a batch, and only then which copies the next attempt leaves out, without events."""
        result = self.reporter.finish(report, work, *tasks)
        self.copies.remember([*delivered, *(copy for one in routed for copy in one.outcome.done)], left=result.not_done)
        return result

    def _release(self, batch: ReadBatch, numbers: BatchNumbers, result: RoutingResult) -> None:
        """End holds of keys, except for the messages with a number that are not done."""
        if numbers.held:
            done = {entry.message.message_id for entry in batch.entries} - set(result.not_done)
            self.numberer.holder.release(batch.exchange.name, numbers.held, left=numbers.numbered - done)


def _deliver(logged: _Logged, work: FifoBatch[Entry], sent: list[SentCopy]) -> None:
    """Deliver publications to connections; no message of a failed one's key overtakes it."""
    distribution = logged.deliver()
    sent += distribution.sent
    keys = {one.publication.properties.key for one in logged.published if _id(one) in distribution.failed}
    work.recall({_id(one) for one in logged.published if one.publication.properties.key in keys})


def _deliver_and_acknowledge(
    live: LiveDelivery, logged: _Logged, batch: ReadBatch, work: FifoBatch[Entry], sent: list[SentCopy]
) -> None:
    # One after the other: a publisher that waits is in order across topics, for every connection.
    _deliver(logged, work, sent)
    _acknowledge(live, batch, work)


def _acknowledge(live: LiveDelivery, batch: ReadBatch, work: FifoBatch[Entry]) -> None:
    left = set(work.not_done())
    done = [entry for entry in batch.entries if isinstance(entry, Publication)]
    work.recall(live.acknowledge([one for one in done if one.message.message_id not in left]))


def _published(entries: Sequence[Entry], numbers: BatchNumbers) -> list[NumberedPublication]:
    return [
        NumberedPublication(entry, numbers.sequences[entry.message.message_id])
        for entry in entries
        if isinstance(entry, Publication)
    ]


def _id(one: NumberedPublication) -> MessageId:
    return one.publication.message.message_id
