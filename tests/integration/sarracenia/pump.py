"""A load test of exchanges: random bindings and messages, and the expected deliveries."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from itertools import cycle
from random import Random

from signalbox.aws.history.athena import Athena, quoted
from signalbox.cli.exchange.stage import client_of
from signalbox.clients.control import NoControlReply
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.consumer import Consumer
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.exchange.messages.properties import DeliveredMessage
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.messages import MessageId
from tests.patience import wait_for
from tests.unit.exchange.matching.naive_topics import is_match

PLAIN, LOG = "xs_load", "xs_load.fifo"
MESSAGES = {PLAIN: 3_600, LOG: 400}
QUEUES = {PLAIN: [f"q_load_{n:02}" for n in range(40)], LOG: [f"q_load_{n:02}.fifo" for n in range(10)]}
BINDINGS = {PLAIN: 180, LOG: 20}
# Consecutive messages have equal keys, as files of one directory do, so the copies of a batch share calls.
NEIGHBOURS = 25
SITES, KINDS, STATIONS = 8, 4, 6
LOG_KEYS = 40
PUBLISHERS, CONSUMERS, DECLARERS = 3, 4, 4
PREFETCH = 100
# The emulator scans the whole queue for each batch, so publishers wait for a short backlog, checked at this interval.
BACKLOG, POSTS_PER_LOOK = 600, 50
BACKLOG_SECONDS = 300
SECONDS_BETWEEN_BINDINGS = 2
IMPATIENCE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Binding:
    """A generated binding."""

    exchange: str
    queue: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A publication; its number is its body, and the order of publishing within its exchange."""

    number: int
    exchange: str
    key: str


def made_bindings(chance: Random) -> list[Binding]:
    """Generate the configured number of distinct bindings, spread over all queues."""
    made: dict[Binding, None] = {}
    for exchange, count in BINDINGS.items():
        queues, make = QUEUES[exchange], {PLAIN: _pattern, LOG: _log_pattern}[exchange]
        before = len(made)
        while len(made) < before + count:
            number = len(made) - before
            made[Binding(exchange, queues[number % len(queues)], make(chance))] = None
    return list(made)


def _pattern(chance: Random) -> str:
    site, kind, station = chance.randrange(SITES), chance.randrange(KINDS), chance.randrange(STATIONS)
    forms = [
        f"v03.site{site}.kind{kind}.station{station}",
        f"v03.site{site}.kind{kind}.station{station}.late",
        f"v03.site{site}.*.station{station}",
        f"*.site{site}.kind{kind}.*.late",
        f"v03.site{site}.kind{kind}.station{station}.#",
        f"#.kind{kind}.station{station}.late",
        f"v03.#.site{site}.#.station{station}",
        f"v03.site{site}.kind{kind}.#",
    ]
    return chance.choice(forms)


def _log_pattern(chance: Random) -> str:
    number = chance.randrange(LOG_KEYS)
    return chance.choice([f"log.{number % 4}.{number}", f"log.{number % 4}.*", f"#.{number}", f"log.#.{number}"])


def made_messages(chance: Random) -> list[Sent]:
    """Generate the messages, in the order of their numbers."""
    keys = [_key(chance, number // NEIGHBOURS) for number in range(MESSAGES[PLAIN])]
    keys += [f"log.{number % 4}.{number % LOG_KEYS}" for number in range(MESSAGES[LOG])]
    return [Sent(number, PLAIN if number < MESSAGES[PLAIN] else LOG, key) for number, key in enumerate(keys)]


def _key(chance: Random, neighbourhood: int) -> str:
    site, kind = neighbourhood % (SITES + 1), neighbourhood % KINDS  # few bindings match the last site
    late = chance.choice(["", "", ".late", ".late.again"])
    return f"v03.site{site}.kind{kind}.station{neighbourhood // 7 % STATIONS}{late}"


def expected(bindings: Iterable[Binding], messages: Iterable[Sent]) -> dict[str, set[Sent]]:
    """Return the messages that each queue must receive, by the naive implementation of the rules."""
    matches = cache(is_match)
    by_exchange = {name: [one for one in bindings if one.exchange == name] for name in MESSAGES}
    found: dict[str, set[Sent]] = {queue: set() for queues in QUEUES.values() for queue in queues}
    for message in messages:
        for binding in by_exchange[message.exchange]:
            if matches(binding.pattern, message.key):
                found[binding.queue].add(message)
    return found


@dataclass(frozen=True, slots=True)
class Pump:
    """The stage's exchanges, and the operations of the load test."""

    deployment: Deployment
    shared: ExchangeClient
    """Shared by all threads, so only for operations that wait for no reply."""

    @classmethod
    def of(cls, deployment: Deployment) -> "Pump":
        return cls(deployment, client_of(deployment))

    def client(self) -> ExchangeClient:
        """Return a client for a single thread."""
        return client_of(self.deployment)

    def declare(self, bindings: Sequence[Binding]) -> None:
        """Declare all exchanges and queues and bind them, in parallel."""
        client = self.client()
        for exchange in MESSAGES:
            client.declare_exchange(exchange)
        queues = [queue for queues in QUEUES.values() for queue in queues]
        self._share([lambda client, name=queue: client.declare_queue(name) for queue in queues])
        self._share([lambda client, one=one: client.bind(one.exchange, one.queue, one.pattern) for one in bindings])

    def _share(self, commands: Sequence[Callable[[ExchangeClient], object]]) -> None:
        def give(part: Sequence[Callable[[ExchangeClient], object]]) -> None:
            client = self.client()
            for command in part:
                command(client)

        with ThreadPoolExecutor(DECLARERS) as threads:
            list(threads.map(give, [commands[number::DECLARERS] for number in range(DECLARERS)]))

    def publish_all(
        self, messages: Sequence[Sent], *, may_publish: Callable[[float], bool] = lambda _: True
    ) -> dict[MessageId, Sent]:
        """Publish all messages in parallel, those of the ordered exchange by a single publisher to keep their order.

        Return them by message id. Each publisher waits while `may_publish` is false for its next share, from 0 to 1.
        """
        plain = [one for one in messages if one.exchange == PLAIN]
        share = -(-len(plain) // PUBLISHERS)
        parts = [plain[start : start + share] for start in range(0, len(plain), share)]
        parts.append([one for one in messages if one.exchange == LOG])
        with ThreadPoolExecutor(len(parts)) as threads:
            published = threads.map(partial(self._publish, may_publish=may_publish), parts)
            return {key: one for part in published for key, one in part.items()}

    def _publish(self, messages: Sequence[Sent], *, may_publish: Callable[[float], bool]) -> dict[MessageId, Sent]:
        """Publish messages of one exchange in order; return them by message id."""
        exchange = messages[0].exchange
        posts = [PublishRequest(one.key, str(one.number), {"number": str(one.number)}) for one in messages]
        client = self.client()
        posted = list(client.publish_all(exchange, self._paced(posts, exchange, may_publish)))
        return {one.message_id: message for one, message in zip(posted, messages, strict=True) if one.message_id}

    def _paced(
        self, posts: Sequence[PublishRequest], exchange: str, may_publish: Callable[[float], bool]
    ) -> Iterator[PublishRequest]:
        def is_keeping_up() -> bool:
            return self._sizes(exchange)["waiting"] < BACKLOG

        for start in range(0, len(posts), POSTS_PER_LOOK):
            end = min(start + POSTS_PER_LOOK, len(posts))
            wait_for(partial(may_publish, end / len(posts)), "publishing permitted", seconds=BACKLOG_SECONDS)
            wait_for(is_keeping_up, "the router keeping up", seconds=BACKLOG_SECONDS, every=1)
            yield from posts[start:end]

    @contextmanager
    def rebinding(self) -> Iterator[None]:
        """Bind and unbind a pattern without matches during the context, so that the router recompiles all bindings."""
        over = threading.Event()

        def rebind() -> None:
            client = self.client()
            client.reply_timeout = IMPATIENCE
            for change in cycle((client.bind, client.unbind)):
                for exchange, queues in QUEUES.items():
                    with suppress(NoControlReply):  # the function was killed
                        change(exchange, queues[0], "nobody.#")
                if over.wait(SECONDS_BETWEEN_BINDINGS):
                    return

        thread = threading.Thread(target=rebind, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def left(self) -> Counter[str]:
        """Return the number of messages that wait to be routed or retried, and of those in flight."""
        retries = f"{self.shared.names.stage}-exchange-retries"
        return sum((self._sizes(name) for name in (*MESSAGES, retries, f"{retries}.fifo")), Counter[str]())

    def _sizes(self, queue: str) -> Counter[str]:
        asked = {"waiting": "ApproximateNumberOfMessages", "in flight": "ApproximateNumberOfMessagesNotVisible"}
        url = self.shared.url_prefix + queue
        found = self.shared.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[*asked.values()])["Attributes"]
        return Counter({what: int(found[name]) for what, name in asked.items()})

    def drain(self) -> dict[str, list[DeliveredMessage]]:
        """Receive and acknowledge all messages of every queue, in order of delivery."""
        queues = [queue for queues in QUEUES.values() for queue in queues]
        with ThreadPoolExecutor(CONSUMERS) as threads:
            return dict(zip(queues, threads.map(self._drained, queues), strict=True))

    def _drained(self, queue: str) -> list[DeliveredMessage]:
        place, url = ResourceRef(ResourceKind.QUEUE, queue), self.shared.url_prefix + self.shared.names.queue(queue)
        consumer = Consumer(self.shared.sqs, place, url, prefetch=PREFETCH)
        found: list[DeliveredMessage] = []
        while taken := consumer.receive(wait_seconds=0):
            found += [one.delivered for one in taken]
            consumer.ack(*taken)
        return found

    def attempts(self) -> dict[str, int]:
        """Return the number of routing attempts of messages with more than one, by message id."""
        rows = self._history("message_id, max(attempt) AS attempts", "attempt > 1 GROUP BY message_id")
        return {str(row["message_id"]): int(row["attempts"] or 0) for row in rows}

    def facts(self) -> dict[str, int]:
        """Return the number of delivered copies and of dropped messages in the history."""
        outcomes = "outcome IN ('delivered', 'dropped')"
        rows = self._history("outcome, count(DISTINCT event_id) AS facts", f"{outcomes} GROUP BY outcome")
        return {str(row["outcome"]): int(row["facts"] or 0) for row in rows}

    def _history(self, columns: str, condition: str) -> Sequence[Mapping[str, str | None]]:
        outputs, sources = self.deployment.outputs, ", ".join(map(quoted, MESSAGES))
        results = f"s3://{outputs['HistoryBucket']}/queries/"
        athena = Athena(self.deployment.session().client("athena"), outputs["HistoryDatabase"], results)
        asked = f"capability = 'exchange' AND source IN ({sources}) AND {condition}"
        return athena.rows(f"SELECT {columns} FROM {outputs['HistoryTable']} WHERE {asked}")  # noqa: S608 - our texts
