"""The number of SQS calls of routing, with the real router and a call counter instead of SQS."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from benchmarks.parts.splitting.calls import CountingSender
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import TrustedSenders
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, ExchangeRecord, ResourceKind, ResourceRef
from signalbox.exchange.routing.batch_reader import BatchReader
from signalbox.exchange.routing.batch_report import Reporter
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher
from signalbox.exchange.routing.copy_router import CopyRouter
from signalbox.exchange.routing.copy_settings import CopySettingsCache
from signalbox.exchange.routing.limits import MOST_COPIES, Allowance
from signalbox.exchange.routing.numbering import Numberer
from signalbox.exchange.routing.ports import CopySettings, KeysOfExchange, RoutingSnapshot
from signalbox.exchange.routing.refusals import Refusals
from signalbox.exchange.routing.router import Router
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.exchange.routing.routing_world import MemorySentCopies

MESSAGES = 1_000
BATCH = 10  # the maximum that Lambda receives and deletes in one call
QUEUES = (1, 5, 50)
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EXCHANGE = ExchangeName("xpublic")
NOWHERE = QueueName("nowhere")


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one case: Lambda's own, the function's sends, and its reads of the table."""

    queues: int
    is_for_all: bool
    received: int
    sent: int
    deleted: int
    copies: int
    looks: int

    @property
    def total(self) -> int:
        """Return the number of all calls to SQS."""
        return self.received + self.sent + self.deleted

    @property
    def floor(self) -> int:
        """Return the calls with full batches only: receive and delete by tens, send each queue tens."""
        return self.received + self.deleted + -(-self.copies // BATCH)


@dataclass(slots=True)
class _Table:
    """`RoutingTable` of one exchange."""

    bound: Sequence[Binding]
    looks: int = 0

    def snapshot(
        self, exchanges: Iterable[ExchangeName], *, senders: Iterable[str], heads: KeysOfExchange | None = None
    ) -> RoutingSnapshot:
        assert list(exchanges) == [EXCHANGE]
        assert (list(senders), heads) == ([], None)
        self.looks += 1
        return RoutingSnapshot({EXCHANGE: ExchangeRecord(EXCHANGE, None, NOW)}, {})

    def bindings(self, exchange: ExchangeName, *, first_word: str | None = None) -> Sequence[Binding]:
        assert (exchange, first_word) == (EXCHANGE, None)
        return self.bound

    def first_words(self, exchange: ExchangeName, *, around: str) -> Sequence[str]:
        raise AssertionError(f"{exchange!r} is held whole, but {around!r} is read")

    def created_at(self, _queue: DeclaredName) -> datetime:
        return NOW

    def copy_settings(self, _queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, CopySettings]:
        return {}


@dataclass(slots=True)
class _CounterWriter:
    """A `CounterWriter` that adds up the delivered copies."""

    counts: dict[ResourceRef, int] = field(default_factory=dict)

    def add(self, counts: Mapping[ResourceRef, Mapping[str, int]], *, at: datetime) -> None:
        for resource, counted in counts.items():
            self.counts[resource] = self.counts.get(resource, 0) + sum(counted.values()) * (at == NOW)


def count() -> Iterator[Calls]:
    """Yield the calls of each case: messages for all queues, and messages for one queue each."""
    for queues in QUEUES:
        yield _counted(queues, is_for_all=True)
    for queues in QUEUES[1:]:
        yield _counted(queues, is_for_all=False)


def _counted(queues: int, *, is_for_all: bool) -> Calls:
    table, sender = _Table([_bound(number, is_for_all=is_for_all) for number in range(queues)]), CountingSender()
    refusals = Refusals(None, lambda: NOW, lambda: 0)  # type: ignore[arg-type] # no queue refuses
    dispatcher = CopyDispatcher(sender, table, refusals, NOWHERE, NOWHERE, NOWHERE, lambda: range(1))
    settings = CopySettingsCache(table)
    senders = TrustedSenders("AROA", "AROB")
    router = Router(
        BatchReader(table, settings, None, senders, str, lambda: NOW),  # type: ignore[arg-type] # no exchange is live
        Numberer(None, None),  # type: ignore[arg-type] # nothing is ordered
        None,  # no exchange is live
        CopyRouter(
            dispatcher,
            refusals,
            Allowance(None, MOST_COPIES),  # type: ignore[arg-type] # no user has declared a queue
            None,
            settings,
            StageNames("benchmark"),
            lambda: NOW,
            MemorySentCopies(),
            lambda: False,
        ),
        Reporter(_CounterWriter()),
        lambda publisher, heads: bool(publisher) and heads == 0,  # nothing is ordered
    )
    batches = [
        [_message(number, queues) for number in range(start, start + BATCH)] for start in range(0, MESSAGES, BATCH)
    ]
    for batch in batches:
        routed = router.route(batch, EXCHANGE)
        assert not routed.not_done
    copies = MESSAGES * (queues if is_for_all else 1)
    assert sender.messages == copies
    return Calls(queues, is_for_all, len(batches), sender.calls, len(batches), copies, table.looks)


def _bound(number: int, *, is_for_all: bool) -> Binding:
    pattern = "v03.#" if is_for_all else f"v03.queue{number}.#"
    return Binding(EXCHANGE, ResourceRef(ResourceKind.QUEUE, f"q_{number}"), Pattern.parse(pattern))


def _message(number: int, queues: int) -> Message:
    """Return a message as Lambda delivers it; successive messages are for different queues."""
    published = MessageProperties.of_publication(f"v03.queue{number % queues}.bulletins", "x" * 200).published()
    attributes = {name: attribute.value for name, attribute in published.attributes.items()}
    system_attributes = {"SentTimestamp": str(round(NOW.timestamp() * 1000)), "ApproximateReceiveCount": "1"}
    document = {
        "MessageId": str(number),
        "Body": published.body,
        "MessageAttributes": attributes,
        "Attributes": system_attributes,
    }
    return Message.parse(document)
