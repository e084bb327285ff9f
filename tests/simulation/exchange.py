"""The stage of the exchange: publishers, bindings of a standard and of an ordered exchange, and queues that fail."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError

from lambdas.exchange import route
from signalbox.aws.exchange.bindings import DynamoBindings
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.exchange.queues import ORDERED
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import StageNames, dead_letter_name, existing_queue
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, DeclaredQueue, ExchangeRecord, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.messages import outgoing
from signalbox.queues import QueueName, is_fifo
from signalbox.sarracenia.rights.names import ExchangeName
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.settings.config import Config
from tests.simulation.clients import SetUpClient
from tests.simulation.functions import Mapping_
from tests.simulation.kernel import START, Fault
from tests.simulation.queue import SimulatedQueue
from tests.simulation.services import Refusal
from tests.simulation.sqs import URL
from tests.simulation.table import Index, Table
from tests.simulation.world import World

CONFIG = Config()
NAMES = StageNames("signalbox", "")
STANDARD, ORDERED_EXCHANGE = "xs", "xlog.fifo"
RETRIES, ORDERED_RETRIES, DEAD = "signalbox-exchange-retries", "signalbox-exchange-retries.fifo", "dead-exchange"
KEYS = ("a.b", "a.c", "a.b.d", "e", "e.f", "g")
# The queues with their patterns, by exchange.
BOUND = {
    STANDARD: {"q_all": ("#",), "q_a": ("a.#", "a.b"), "q_ab": ("a.b",), "q_star": ("*.*",), "team": ("e.#",)},
    ORDERED_EXCHANGE: {
        "q_all.fifo": ("#",),
        "q_a.fifo": ("a.#", "a.*"),
        "q_e.fifo": ("e.#",),
        "q_g.fifo": ("g",),
        "q_log": ("#",),
        "team.fifo": ("a.#", "e"),
    },
}
# Queues of others, which only an outage keeps from taking copies.
EXISTING = ("team", "team.fifo")
PUBLISHERS = 4
ENVIRONMENT = {
    "STAGE": "signalbox",
    "EXCHANGE_TABLE": "Exchanges",
    "EXCHANGE_PREFIX": "",
    "HISTORY_STREAM": "history",
    "HISTORY_OVERFLOW_URL": URL + "overflow",
    "EXCHANGE_DEAD_LETTER_QUEUE_URL": URL + DEAD,
    "EXCHANGE_RETRY_QUEUE_URL": URL + RETRIES,
    "EXCHANGE_ORDERED_RETRY_QUEUE_URL": URL + ORDERED_RETRIES,
    "ROUTE_TIMEOUT_SECONDS": str(CONFIG.route_timeout_seconds),
    "ROUTE_RETRY_SECONDS": str(CONFIG.route_retry_seconds),
    "EXCHANGE_RETENTION_SECONDS": str(CONFIG.exchange_retention_seconds),
    "EXCHANGE_CONTROL_ROLE_ID": "AROACONTROL",
}


@dataclass
class Published:
    """A publication, and when its exchange had it for the first time."""

    exchange: str
    key: str
    body: str
    is_valid: bool = True


@dataclass
class ExchangeAccount:
    """What publishers sent, by body."""

    published: dict[str, Published] = field(default_factory=dict)


def begin_of_stage() -> datetime:
    """Return when the records of a stage were made."""
    return datetime.fromtimestamp(START - 86400, UTC)


def matches(pattern: str, key: str) -> bool:
    """Return whether a key matches a pattern, in the most naive way."""
    return _matches(pattern.split("."), key.split("."))


def _matches(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_matches(pattern[1:], words[n:]) for n in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _matches(pattern[1:], words[1:])


class ExchangeWorld(World):
    """A stage of the exchange with its publishers."""

    private = tuple(f" to {exchange}" for exchange in BOUND)

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(seed, **options)
        self.account = ExchangeAccount()
        self._make_queues()
        self._declare()
        self._make_functions()
        self._plan_refusals()
        for number in range(PUBLISHERS):
            for exchange in BOUND:
                name = f"publisher{number} of {exchange}"
                self.actor(name, partial(self._publisher, number, exchange), after=2)
        self.every(30, self._consume)

    def _make_queues(self) -> None:
        visibility = str(VISIBILITY_PER_TIMEOUT * CONFIG.route_timeout_seconds)
        self._make(DEAD, {})
        for name in (RETRIES, ORDERED_RETRIES):
            self._make(name, {"VisibilityTimeout": str(CONFIG.route_retry_seconds)})
        for exchange, queues in BOUND.items():
            for name in (exchange, *queues):
                self._make(name, {"VisibilityTimeout": visibility, "MessageRetentionPeriod": "1209600"})
                self._make(dead_letter_name(QueueName(name)), {})

    def _make(self, name: str, attributes: dict[str, str]) -> None:
        ordered = ORDERED if is_fifo(name) else {}
        self.sqs("CreateQueue", {"QueueName": name, "Attributes": {**attributes, **ordered}})

    def _declare(self) -> None:
        self.dynamodb.tables["Exchanges"] = Table("Exchanges", "pk", "sk", {"by_kind": Index("kind", "pk")})
        table = DynamoTable(SetUpClient(self.calls), "Exchanges")  # type: ignore[arg-type]
        begin = begin_of_stage()
        for exchange, queues in BOUND.items():
            assert DynamoExchanges(table).create(ExchangeRecord(ExchangeName(exchange), None, begin))
            for queue, patterns in queues.items():
                name = existing_queue(QueueName(queue)) if queue in EXISTING else DeclaredName(queue)
                DynamoQueues(table).create(DeclaredQueue(name, None, begin, begin))
                for pattern in patterns:
                    target = ResourceRef(ResourceKind.QUEUE, name)
                    DynamoBindings(table).bind(Binding(ExchangeName(exchange), target, Pattern.parse(pattern)))

    def _make_functions(self) -> None:
        timeout = CONFIG.route_timeout_seconds
        made = self.function("route", route.handler, timeout=timeout, environment=ENVIRONMENT, loops=True)
        for name in (*BOUND, RETRIES, ORDERED_RETRIES):
            Mapping_(self.sqs.queues[name], made, batch_size=10, concurrency=CONFIG.route_concurrency)
            self.limit(self.sqs.queues[name])

    def _plan_refusals(self) -> None:
        """Let some queues refuse messages for a time, as with a disabled key."""
        kernel = self.kernel
        for number in range(int(kernel.draw("refusals") * 4)):
            key = f"refusal{number}"
            if kernel.chosen is not None and key not in kernel.chosen:
                continue
            names = sorted({name for queues in BOUND.values() for name in queues} - set(EXISTING))
            queue = self.sqs.queues[names[int(kernel.draw(f"{key} queue") * len(names))]]
            begin = START + kernel.draw(f"{key} begin") * self.fault_plan.faults_for
            end = min(begin + 1200 ** kernel.draw(f"{key} length"), self.faults_end)
            kernel.at(begin, partial(self._refuse, key, queue, end))

    def _refuse(self, key: str, queue: SimulatedQueue, end: float) -> None:
        queue.refuses_until = max(queue.refuses_until, end)
        kind = f"queue {queue.name} refuses messages for {end - self.kernel.now:.0f} s"
        self.kernel.faults.append(Fault(key, kind, self.kernel.now))
        self.kernel.note(f"FAULT: {kind}")

    # Publishers and consumers.

    def _publisher(self, number: int, exchange: str) -> None:
        kernel, count = self.kernel, 0
        while kernel.now < self.end - 600:
            kernel.sleep(kernel.between(2, 60))
            is_burst = kernel.random() < 0.05
            for _ in range(12 if is_burst else 1 + kernel.number(4)):
                count += 1
                key = KEYS[0 if is_burst else kernel.number(len(KEYS))]
                self._publish(exchange, key, f"{number}.{count} to {exchange}", is_valid=kernel.random() > 0.01)

    def _publish(self, exchange: str, key: str, body: str, *, is_valid: bool) -> None:
        self.account.published[body] = Published(exchange, key, body, is_valid)
        deduplication_id = body.replace(" ", "-") if is_fifo(exchange) else None
        properties = MessageProperties.of_publication(RoutingKey(key), body, {})
        request = outgoing(properties.published(deduplication_id=deduplication_id))
        if not is_valid:
            del request["MessageAttributes"]
        for _ in range(3):
            try:
                self.call("sqs", "SendMessage", QueueUrl=URL + exchange, **request)
            except (Refusal, BotoCoreError):
                self.kernel.sleep(1)
                continue
            return

    def _consume(self) -> None:
        """Delete the messages that consumers have had time to receive: the account is in the queues' logs."""
        for queues in BOUND.values():
            for name in queues:
                self.sqs.queues[name].messages.clear()
