"""Benchmark of the event rate of live exchanges ordered by topic, by publisher and by exchange."""

import json
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

from benchmarks.parts.live.following import following, wait
from benchmarks.parts.live.latency import LOOK_SECONDS
from benchmarks.shared.stage import Stage
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.users import ExchangeUsers, register
from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import Cursor
from signalbox.clients.live.session import ConnectionLost, Login
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.exchange.model.records import OrderBy
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role

EVENTS, TOPICS = 100, 20
PUBLISHERS = (1, 4)  # concurrent
ROUNDS = 4
SUBSCRIBERS = 2  # that must receive the same order
WARM_UP = 20
PREFIX = "order"
END_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement, which starts with the first call."""

    publishing_seconds: float
    """Seconds until SQS answered the last call."""
    seconds: float
    """Seconds until the last subscriber received the last event."""
    missing: int
    out_of_order: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """The runs of an ordering mode with a number of publishers, one per round."""

    order_by: OrderBy
    publishers: int
    runs: Sequence[Run]
    over_topic: float
    """The event rate relative to ordering by topic, as the median of the rounds' ratios."""

    @property
    def published_per_second(self) -> float:
        """Return the median number of events per second that SQS accepted."""
        return statistics.median(EVENTS / one.publishing_seconds for one in self.runs)

    @property
    def events_per_second(self) -> list[float]:
        """Return the end-to-end events per second of each round, in ascending order."""
        return sorted(EVENTS / one.seconds for one in self.runs)

    @property
    def missing(self) -> int:
        """Return the number of deliveries that did not arrive."""
        return sum(one.missing for one in self.runs)

    @property
    def out_of_order(self) -> int:
        """Return the number of deliveries that violate the exchange's ordering guarantee."""
        return sum(one.out_of_order for one in self.runs)


@dataclass(frozen=True, slots=True)
class _Seen:
    """An event as a subscriber received it."""

    publisher: int
    number: int
    topic: str
    at: float = field(compare=False)


@dataclass(slots=True)
class _Subscriber:
    """A client in its own thread, and the events that it received in each run."""

    client: LiveClient
    cursor: Cursor = field(default_factory=lambda: Cursor(TopicPattern.parse(PREFIX, MatchPolicy.PREFIX)))
    seen: dict[int, list[_Seen]] = field(default_factory=lambda: defaultdict(list))

    def follow(self, over: threading.Event) -> None:
        with self.client:
            self.client.follow(self.cursor)
            while not over.is_set():
                with suppress(ConnectionLost):
                    self._receive()

    def _receive(self) -> None:
        event = self.client.receive(LOOK_SECONDS)
        if event is None:
            return
        match event.payload.arguments[0]:
            case [int(run), int(publisher), int(number)]:  # in the form of `_posts`; other parts publish other events
                self.seen[run].append(_Seen(publisher, number, event.topic, time.perf_counter()))


@dataclass(frozen=True, slots=True)
class _Realm:
    """A live exchange and the subscribers of all its topics."""

    name: str
    subscribers: Sequence[_Subscriber]


@dataclass(frozen=True, slots=True)
class Trial:
    """One exchange per ordering mode on a stage, with subscribers and publishers."""

    realms: Mapping[OrderBy, _Realm]
    publishers: Sequence[ExchangeClient]
    _runs: Iterator[int] = field(default_factory=count)

    def run(self, order_by: OrderBy, *, publishers: int = 1, topics: int = TOPICS, events: int = EVENTS) -> Run:
        """Publish events round-robin over topics with concurrent publishers, and wait until all have arrived."""
        run, realm = next(self._runs), self.realms[order_by]
        posts = [_posts(run, publisher, topics, events // publishers) for publisher in range(publishers)]
        begun = time.perf_counter()
        with ThreadPoolExecutor(publishers) as pool:
            sending = [
                pool.submit(_publish, client, realm.name, some, order_by)
                for client, some in zip(self.publishers, posts, strict=False)
            ]
            for one in sending:
                one.result()
        published = time.perf_counter()
        wanted = sum(map(len, posts))
        wait(lambda: all(len(one.seen[run]) >= wanted for one in realm.subscribers), seconds=END_SECONDS)
        seen = [list(one.seen[run]) for one in realm.subscribers]
        if not all(seen):
            raise UnavailableError(f"no event of exchange {realm.name!r} arrived within {END_SECONDS:.0f} s")
        last = max(one.at for line in seen for one in line)
        missing = sum(wanted - len(set(line)) for line in seen)
        return Run(published - begun, last - begun, missing, _out_of_order(order_by, seen))


def measure(trial: Trial, say: Callable[[str], None]) -> list[Ordered]:
    """Measure the ordering modes alternately in rounds, so that machine noise affects all of them."""
    runs: dict[tuple[int, OrderBy], list[Run]] = {(some, by): [] for some in PUBLISHERS for by in OrderBy}
    for order_by in OrderBy:
        say(f"warming up: by {order_by}")
        trial.run(order_by, publishers=max(PUBLISHERS), events=WARM_UP * max(PUBLISHERS))
    for number in range(1, ROUNDS + 1):
        for publishers in PUBLISHERS:
            for order_by in OrderBy if number % 2 else reversed(OrderBy):
                say(f"round {number} of {ROUNDS}: by {order_by}, {publishers} concurrent publishers")
                runs[publishers, order_by].append(trial.run(order_by, publishers=publishers))
    return [
        Ordered(order_by, publishers, some, _median_ratio(some, runs[publishers, OrderBy.TOPIC]))
        for (publishers, order_by), some in runs.items()
    ]


def _median_ratio(runs: Sequence[Run], by_topic: Sequence[Run]) -> float:
    return statistics.median(other.seconds / one.seconds for one, other in zip(runs, by_topic, strict=True))


@contextmanager
def trial_on(stage: Stage) -> Iterator[Trial]:
    """Declare one exchange per ordering mode, start subscribers and create publishers; nothing is cleaned up."""
    with ExitStack() as stack:
        administrator = stack.enter_context(client_of(stage.deployment))
        realms = {}
        for order_by in OrderBy:
            name = f"xorder-{order_by}.fifo"
            administrator.declare_exchange(name, live={"live": True, "order_by": order_by.value})
            realms[order_by] = _Realm(name, [_Subscriber(_client(stage, name)) for _ in range(SUBSCRIBERS)])
        stack.enter_context(following([one for realm in realms.values() for one in realm.subscribers]))
        publishers = [_publisher(stage.deployment, number) for number in range(max(PUBLISHERS))]
        yield Trial(realms, publishers)


def _client(stage: Stage, realm: str) -> LiveClient:
    (user,) = (one for one in stage.local["live_users"] if one["role"] == Role.ADMIN)
    return LiveClient(connector(stage.local["websocket_url"]), Login(realm, user["name"], user["ticket"]))


def _publisher(deployment: Deployment, number: int) -> ExchangeClient:
    """Create a user with the right to publish everywhere, and return its client; SQS callers are the publishers."""
    name = UserName(f"order-{number}")
    session, outputs = deployment.session(), deployment.outputs
    users = ExchangeUsers.of(session, outputs)
    records = DynamoUsers(session.resource("dynamodb").Table(outputs["ExchangeTable"]))
    register(users, records, name, role=Role.FEEDER, now=datetime.now(UTC))
    key = users.new_key(name)
    sqs = deployment.session_of(ClientCredentials(key.access_key_id, key.secret_access_key)).client("sqs")
    url_prefix = outputs["ExchangeControlQueueUrl"].rpartition("/")[0] + "/"
    return ExchangeClient(sqs, users.control_queues.names, url_prefix, name)


def _posts(run: int, publisher: int, topics: int, events: int) -> list[PublishRequest]:
    return [
        PublishRequest(
            f"{PREFIX}.t{number % topics}", json.dumps([run, publisher, number]), {}, f"{run}-{publisher}-{number}"
        )
        for number in range(events)
    ]


def _publish(client: ExchangeClient, exchange: str, posts: Sequence[PublishRequest], order_by: OrderBy) -> None:
    for posted in client.publish_all(exchange, posts, order_by=order_by):
        if posted.message_id is None:
            raise posted.problem or UnavailableError(f"a message to exchange {exchange!r} was not published")


def _out_of_order(order_by: OrderBy, seen: Sequence[Sequence[_Seen]]) -> int:
    """Count events after a later one of their publisher, and those at different positions for two subscribers.

    Both are counted within each topic, as every exchange guarantees, and within the groups of the ordering mode.
    """
    group_of: Mapping[OrderBy, Callable[[_Seen], Hashable]] = {
        OrderBy.TOPIC: lambda one: one.topic,
        OrderBy.PUBLISHER: lambda one: one.publisher,
        OrderBy.EXCHANGE: lambda _: "all",
    }
    return sum(_violations(*lines) for mode in {OrderBy.TOPIC, order_by} for lines in _groups(seen, group_of[mode]))


def _groups(seen: Sequence[Sequence[_Seen]], group_of: Callable[[_Seen], Hashable]) -> Iterator[list[list[_Seen]]]:
    """Yield for each group the events that each subscriber received of it."""
    for group in {group_of(one) for one in seen[0]}:
        yield [[one for one in line if group_of(one) == group] for line in seen]


def _violations(line: Sequence[_Seen], other: Sequence[_Seen]) -> int:
    newest: dict[int, int] = {}
    violations = sum(mine != theirs for mine, theirs in zip(line, other, strict=False))
    for one in line:
        violations += one.number < newest.get(one.publisher, 0)
        newest[one.publisher] = max(one.number, newest.get(one.publisher, 0))
    return violations
