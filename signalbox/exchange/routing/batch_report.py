"""The report of a routed batch: history events, and counters of exchanges and queues, which are collected."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.messages.publications import Publication, Rejection
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.exchange.routing import events
from signalbox.exchange.routing.batch_reader import Entry, ReadBatch
from signalbox.exchange.routing.copy_dispatcher import DispatchResult
from signalbox.exchange.routing.copy_router import RoutedEntries
from signalbox.exchange.routing.ports import CounterWriter, Counts
from signalbox.fifo import FifoBatch
from signalbox.history.event import HistoryEvent
from signalbox.messages import MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName

# A counter is one write unit, whatever its increment. A batch for 100 queues has 101 counters: 200 function instances
# would write 88,000 a second, of which a new table takes 4,000, for all exchanges together.
PAUSE_OF_A_WRITE, LONGEST_PAUSE = timedelta(seconds=0.1), timedelta(minutes=1)
# A write takes 0.6 ms of Lambda's processor: 24,000 would take the whole time of a function.
WRITTEN_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """The result of a batch: the messages to redeliver, and the history events.

    Messages in `pauses` are to be redelivered after these times instead of their queue's visibility timeout.
    """

    not_done: tuple[MessageId, ...]
    events: tuple[HistoryEvent, ...]
    pauses: Mapping[MessageId, timedelta] = field(default_factory=dict)


@dataclass(slots=True)
class BatchReport:
    """The counters and history events of a batch, all with the time `at`.

    An exchange counts messages: `received`, of them `redelivered`, `rejected`, `dropped`, and `alternate` for those
    passed to its alternate. It also counts copies: `routed`, `retried` and `dead`. A queue's `received` counts copies.
    """

    at: datetime
    events: list[HistoryEvent] = field(default_factory=list)
    _counts: defaultdict[ResourceRef, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def count(self, counts: Counts) -> None:
        """Add increments of counters."""
        for resource, counted in counts.items():
            self._counts[resource].update(counted)

    def add_rejection(self, rejection: Rejection, exchange: ExchangeName | None) -> None:
        """Add a dead-lettered message: one that is no valid publication, or no valid copy of a retry queue."""
        if exchange is not None:
            self._counts[ResourceRef(ResourceKind.EXCHANGE, exchange)]["rejected"] += 1
        self.events.append(events.rejected(rejection.message, exchange=exchange, reason=rejection.reason, at=self.at))

    def add_routed(
        self,
        routed: RoutedEntries,
        exchange: ExchangeName,
        *,
        sequences: Mapping[MessageId, int],
        publication_id: Callable[[Publication], int] | None,
    ) -> None:
        """Add the outcome of entries."""
        for entry in routed.handled:
            if isinstance(entry, Rejection):
                self.add_rejection(entry, exchange)
                continue
            sequence = sequences.get(entry.message.message_id)
            if publication_id is not None:
                self._add_logged(entry, exchange, sequence=sequence, publication_id=publication_id(entry))
            self._add_unrouted(entry, exchange, sequence=sequence, is_live=publication_id is not None)
        self.events += routed.kept
        self.add_dispatch(routed.outcome)

    def add_dispatch(self, outcome: DispatchResult) -> None:
        """Add the outcomes of copies."""
        for copy in outcome.delivered:
            self._count(copy, exchange="routed", queue="received")
            self._counts[_queue(copy.queue)]["bytes"] += copy.size_bytes
            self.events.append(events.routed(copy, "delivered", at=self.at))
        for copy in outcome.retried:
            self._count(copy, exchange="retried", queue="retried")
            self.events.append(events.routed(copy, "retried", at=self.at))
        for copy in outcome.omitted:
            self._count(copy, exchange="dead", queue="dead")
        for dead in outcome.dead:
            self._count(dead.copy, exchange="dead", queue="dead")
            self.events.append(events.dead_copy(dead.copy, reason=dead.reason, at=self.at))

    def counts(self) -> Counts:
        """Return the increments of the counters of each exchange and queue."""
        return {
            resource: {name: number for name, number in counted.items() if number}
            for resource, counted in self._counts.items()
        }

    def _add_logged(
        self, publication: Publication, exchange: ExchangeName, *, sequence: int | None, publication_id: int
    ) -> None:
        self.events.append(
            events.logged(publication, exchange=exchange, sequence=sequence, at=self.at, publication_id=publication_id)
        )

    def _add_unrouted(
        self, publication: Publication, exchange: ExchangeName, *, sequence: int | None, is_live: bool
    ) -> None:
        """Add a publication that no binding matched. A live exchange keeps it in its log, so it is not dropped."""
        is_passed_on = bool(publication.routes.queues) and publication.routes.by_alternate
        if not is_passed_on and (publication.routes.queues or is_live):
            return
        outcome = "alternate" if is_passed_on else "dropped"
        self._counts[ResourceRef(ResourceKind.EXCHANGE, exchange)][outcome] += 1
        self.events.append(events.unrouted(publication, outcome, exchange=exchange, sequence=sequence, at=self.at))

    def _count(self, copy: Copy, *, exchange: str, queue: str) -> None:
        self._counts[ResourceRef(ResourceKind.EXCHANGE, copy.exchange)][exchange] += 1
        self._counts[_queue(copy.queue)][queue] += 1


@dataclass(slots=True)
class CollectedCounters:
    """`CounterWriter` of a function instance, which collects increments, for each minute.

    The first ones are due at once, and the following ones after `pause` for each counter that is written, a minute at
    most. An instance that ends without `flush` loses what it has collected.
    """

    stored: CounterWriter
    now: Callable[[], datetime]
    pause: timedelta = PAUSE_OF_A_WRITE
    _collected: dict[datetime, BatchReport] = field(default_factory=dict, init=False)
    _due_at: datetime | None = field(default=None, init=False)
    _left: list[tuple[datetime, ResourceRef, Mapping[str, int]]] = field(default_factory=list, init=False)  # of the due

    def add(self, counts: Counts, *, at: datetime) -> None:
        """Collect increments."""
        minute = at.replace(second=0, microsecond=0)
        report = self._collected.setdefault(minute, BatchReport(at))
        report.at = max(report.at, at)
        report.count(counts)

    def write_due(self) -> None:
        """Write the collected increments if they are due, 1,000 at most; the next call writes the next ones."""
        now = self.now()
        if not self._left and (self._due_at is None or now >= self._due_at):
            self._take()
            self._due_at = now + min(len(self._left) * self.pause, LONGEST_PAUSE)
        self._write(WRITTEN_AT_ONCE)

    def flush(self) -> None:
        """Write the collected increments."""
        self._take()
        self._write(len(self._left))

    def _take(self) -> None:
        for report in self._collected.values():
            self._left += [(report.at, resource, counted) for resource, counted in report.counts().items()]
        self._collected.clear()

    def _write(self, most: int) -> None:
        part, self._left = self._left[:most], self._left[most:]
        for at, counters in groupby(part, itemgetter(0)):
            self.stored.add({resource: counted for _, resource, counted in counters}, at=at)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Reports batches to the counters and to the history.

    `record` takes history events; with it, the result of a batch has none.
    """

    counters: CounterWriter
    parallel_map: ParallelMap = serial_map
    record: Callable[[Sequence[HistoryEvent]], None] | None = None

    def report(
        self,
        batch: ReadBatch,
        routed: Iterable[RoutedEntries],
        *,
        sequences: Mapping[MessageId, int],
        publication_id: Callable[[Publication], int] | None = None,
    ) -> BatchReport:
        """Return the report of a batch. `publication_id` returns the id in the log of a live exchange."""
        report = BatchReport(batch.read_at)
        report.count(batch.received)
        for one in routed:
            report.add_routed(one, batch.exchange.name, sequences=sequences, publication_id=publication_id)
        return report

    def finish(self, report: BatchReport, work: FifoBatch[Entry], *tasks: Callable[[], None]) -> RoutingResult:
        """Execute tasks, and at the same time store a report; return the result of its batch."""
        waiting = list(tasks)
        self.counters.add(report.counts(), at=report.at)
        if (record := self.record) is not None:
            waiting.append(lambda: record(report.events))
        for _ in self.parallel_map(lambda task: task(), waiting):
            pass
        return RoutingResult(work.not_done(), () if self.record else tuple(report.events))


def _queue(name: DeclaredName) -> ResourceRef:
    return ResourceRef(ResourceKind.QUEUE, name)
