"""The report of a routed batch: history events, and counters of exchanges and queues."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.messages.publications import Publication, Rejection, attempt
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.exchange.routing import events
from signalbox.exchange.routing.copy_dispatcher import DispatchResult
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, size_bytes
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(slots=True)
class BatchReport:
    """The counters and history events of a batch, all with the time `at`.

    An exchange counts messages: `received`, of them `redelivered`, `rejected`, `dropped`, and `alternate` for those
    passed to its alternate. It also counts copies: `routed`, `retried` and `dead`. A queue's `received` counts copies.
    """

    at: datetime
    events: list[HistoryEvent] = field(default_factory=list)
    _counts: defaultdict[ResourceRef, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def count_received(self, messages: Sequence[Message], exchange: ExchangeName) -> None:
        """Count received messages."""
        counted = self._counts[ResourceRef(ResourceKind.EXCHANGE, exchange)]
        counted["received"] += len(messages)
        counted["redelivered"] += sum(1 for message in messages if attempt(message) > 1)
        counted["bytes"] += sum(size_bytes(message) for message in messages)

    def add_rejection(self, rejection: Rejection, exchange: ExchangeName | None) -> None:
        """Add a dead-lettered message: one that is no valid publication, or no valid copy of a retry queue."""
        if exchange is not None:
            self._counts[ResourceRef(ResourceKind.EXCHANGE, exchange)]["rejected"] += 1
        self.events.append(events.rejected(rejection.message, exchange=exchange, reason=rejection.reason, at=self.at))

    def add_publication(
        self,
        publication: Publication,
        exchange: ExchangeName,
        *,
        sequence: int | None,
        publication_id: int | None = None,
    ) -> None:
        """Add a publication that no binding matched. A live exchange keeps it in its log, so it is not dropped.

        `publication_id` is the id in that log, or None if the exchange is not live.
        """
        is_live = publication_id is not None
        if publication_id is not None:
            self.events.append(
                events.logged(
                    publication, exchange=exchange, sequence=sequence, at=self.at, publication_id=publication_id
                )
            )
        queues = publication.routes.queues
        if (queues or is_live) and not publication.routes.by_alternate:
            return
        outcome = "alternate" if queues else "dropped"
        self._counts[ResourceRef(ResourceKind.EXCHANGE, exchange)][outcome] += 1
        self.events.append(events.unrouted(publication, outcome, exchange=exchange, sequence=sequence, at=self.at))

    def add_dispatch(self, outcome: DispatchResult) -> None:
        """Add the outcomes of copies."""
        for copy in outcome.delivered:
            self._count(copy, exchange="routed", queue="received")
            self._counts[_queue(copy.queue)]["bytes"] += copy.size_bytes
            self.events.append(events.routed(copy, "delivered", at=self.at))
        for copy in outcome.retried:
            self._count(copy, exchange="retried", queue="retried")
            self.events.append(events.routed(copy, "retried", at=self.at))
        for dead in outcome.dead:
            self._count(dead.copy, exchange="dead", queue="dead")
            self.events.append(events.dead_copy(dead.copy, reason=dead.reason, at=self.at))

    def counted(self) -> None:
        """Forget the increments so far, since they were stored."""
        self._counts.clear()

    def counts(self) -> Mapping[ResourceRef, Mapping[str, int]]:
        """Return the increments of the counters of each exchange and queue."""
        return {
            resource: {name: number for name, number in counted.items() if number}
            for resource, counted in self._counts.items()
        }

    def _count(self, copy: Copy, *, exchange: str, queue: str) -> None:
        self._counts[ResourceRef(ResourceKind.EXCHANGE, copy.exchange)][exchange] += 1
        self._counts[_queue(copy.queue)][queue] += 1


def _queue(name: DeclaredName) -> ResourceRef:
    return ResourceRef(ResourceKind.QUEUE, name)
