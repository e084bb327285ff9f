"""The stage of live: WAMP clients that subscribe and publish, publishers over SQS, and connections that are cut."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError

from lambdas.exchange import route
from lambdas.live import connect, deliver, session
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.exchange.queues import ORDERED
from signalbox.aws.live.account_items import credentials_item, grants_item
from signalbox.aws.live.inbox import deduplication_id
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import Put
from signalbox.clients.live.client import ClientClock, LiveClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.clients.live.session import ConnectionLost, JoinRefused, Login, RequestRefused, SessionClosed
from signalbox.errors import UnavailableError
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, OrderBy, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.rights.grants import Grant
from signalbox.live.session.inbox import frame_body
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import outgoing
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.settings.config import Config
from tests.simulation.clients import SetUpClient
from tests.simulation.connections import CONNECTIONS, SimulatedGateway, SimulatedSocket, opened
from tests.simulation.exchange import begin_of_stage
from tests.simulation.functions import Mapping_
from tests.simulation.services import Refusal
from tests.simulation.sqs import URL
from tests.simulation.table import Index, Table
from tests.simulation.world import World

CONFIG = Config()
REALM, USER, SECRET = ExchangeName("xs_trial.fifo"), UserName("source"), "a-secret"
NAMES = StageNames("signalbox", "")
INBOX, OUTBOX, TIMERS, OVERVIEW = "inbox.fifo", "outbox.fifo", "timers", "overview.fifo"
RETRIES, ORDERED_RETRIES, DEAD, ORDERED_DEAD = "retries", "retries.fifo", "dead-exchange", "dead-live.fifo"
TOPICS = ("trial.a", "trial.b", "trial.b.c")
PATTERNS = ((MatchPolicy.EXACT, "trial.a"), (MatchPolicy.PREFIX, "trial"), (MatchPolicy.WILDCARD, "trial..c"))
# By publisher, most can happen.
ORDERS = (OrderBy.TOPIC, OrderBy.PUBLISHER, OrderBy.PUBLISHER, OrderBy.EXCHANGE)
SUBSCRIBERS, PUBLISHERS, SESSIONS_THAT_PUBLISH, VISITORS = 6, 2, 2, 2
ENVIRONMENT = {
    "STAGE": "signalbox",
    "EXCHANGE_TABLE": "Exchanges",
    "EXCHANGE_PREFIX": "",
    "LIVE_TABLE": "Live",
    "HISTORY_STREAM": "history",
    "HISTORY_OVERFLOW_URL": URL + "overflow",
    "EXCHANGE_DEAD_LETTER_QUEUE_URL": URL + DEAD,
    "EXCHANGE_RETRY_QUEUE_URL": URL + RETRIES,
    "EXCHANGE_ORDERED_RETRY_QUEUE_URL": URL + ORDERED_RETRIES,
    "ROUTE_TIMEOUT_SECONDS": str(CONFIG.route_timeout_seconds),
    "ROUTE_RETRY_SECONDS": str(CONFIG.route_retry_seconds),
    "EXCHANGE_RETENTION_SECONDS": str(CONFIG.exchange_retention_seconds),
    "EXCHANGE_CONTROL_ROLE_ID": "AROACONTROL",
    "LIVE_SESSION_ROLE_ID": "AROASESSION",
    "LIVE_INBOX_URL": URL + INBOX,
    "LIVE_OUTBOX_URL": URL + OUTBOX,
    "LIVE_TIMERS_URL": URL + TIMERS,
    "LIVE_OVERVIEW_URL": URL + OVERVIEW,
    "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL": URL + ORDERED_DEAD,
    "LIVE_CONNECTIONS_URL": "https://connections.example/live",
    "LIVE_VISIBILITY_SECONDS": "60",
}


@dataclass
class Follower:
    """A subscriber: its pattern, and all new events that its client has returned, with the times."""

    pattern: TopicPattern
    cursor: PatternCursor
    events: list[tuple[float, ReceivedEvent]] = field(default_factory=list)
    connections: int = 0


@dataclass
class LiveAccount:
    """What publishers sent, by text, and what subscribers received."""

    sent: dict[str, str] = field(default_factory=dict)
    confirmed: dict[str, float] = field(default_factory=dict)
    followers: dict[str, Follower] = field(default_factory=dict)


class LiveWorld(World):
    """A stage of live with its clients; `mute` are connections of clients that never join, `visits` of visitors."""

    private = ("sqs 0.", "wamp 0.")
    services = (*World.services, CONNECTIONS)

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(seed, **options)
        self.account = LiveAccount()
        self.mute: list[SimulatedSocket] = []
        self.visits: list[SimulatedSocket] = []
        self.order_by = ORDERS[int(self.kernel.draw("order") * len(ORDERS))]
        self._make_queues()
        self._make_tables()
        self._make_functions()
        self._make_clients()
        self.every(20, self._cut_a_connection)

    def _make_queues(self) -> None:
        visibility = {"VisibilityTimeout": str(VISIBILITY_PER_TIMEOUT * CONFIG.live_timeout_seconds)}
        for name in (INBOX, OUTBOX, TIMERS, OVERVIEW):
            self._make(name, visibility)
        for name in (DEAD, ORDERED_DEAD):
            self._make(name, {})
        for name in (RETRIES, ORDERED_RETRIES):
            self._make(name, {"VisibilityTimeout": str(CONFIG.route_retry_seconds)})
        self._make(REALM, {"VisibilityTimeout": str(VISIBILITY_PER_TIMEOUT * CONFIG.route_timeout_seconds)})

    def _make(self, name: str, attributes: dict[str, str]) -> None:
        self.sqs("CreateQueue", {"QueueName": name, "Attributes": attributes | (ORDERED if is_fifo(name) else {})})

    def _make_tables(self) -> None:
        index = {"by_kind": Index("kind", "pk")}
        self.dynamodb.tables |= {
            "Exchanges": Table("Exchanges", "pk", "sk", index),
            "Live": Table("Live", "pk", "sk"),
        }
        exchanges, live = (DynamoTable(SetUpClient(self.calls), name) for name in ("Exchanges", "Live"))
        settings, begin = LiveSettings(order_by=self.order_by), begin_of_stage()
        record = ExchangeRecord(REALM, None, begin, live=settings)
        assert DynamoExchanges(exchanges).create(record)
        DynamoUsers(exchanges).put(User(USER, Role.SOURCE, Ownership.STRICT, begin, "AIDASOURCE"))
        grants = [Grant(right, TopicPattern(MatchPolicy.PREFIX, "trial")) for right in (Right.READ, Right.WRITE)]
        live.write(Put(grants_item(REALM, USER, grants, version=1)))
        live.write(Put(credentials_item(USER, StoredSecret.of(SECRET, salt="salt", with_key=False))))

    def _make_functions(self) -> None:
        timeout = CONFIG.live_timeout_seconds
        connects = self.function("connect", connect.handler, timeout=timeout, environment=ENVIRONMENT)
        sessions = self.function("session", session.handler, timeout=timeout, environment=ENVIRONMENT)
        sessions.identity = "AROASESSION:session"
        delivers = self.function("deliver", deliver.handler, timeout=timeout, environment=ENVIRONMENT)
        routing = CONFIG.route_timeout_seconds
        routes = self.function("route", route.handler, timeout=routing, environment=ENVIRONMENT, loops=True)
        self.gateway = SimulatedGateway(self.kernel, connects, self._put_frame)
        self.calls.services[CONNECTIONS] = self.gateway
        live = ((INBOX, sessions), (TIMERS, sessions), (OUTBOX, delivers))
        for name, function in live:
            Mapping_(self.sqs.queues[name], function, batch_size=10, concurrency=CONFIG.live_concurrency)
        for name in (REALM, RETRIES, ORDERED_RETRIES):
            Mapping_(self.sqs.queues[name], routes, batch_size=10, concurrency=CONFIG.route_concurrency)
        self.schedule(sessions, {"task": session.SWEEP}, 60)

    def _put_frame(self, connection: str, text: str, request: str) -> None:
        ordering = {
            "MessageGroupId": connection,
            "MessageDeduplicationId": deduplication_id(ConnectionId(connection), request),
        }
        self.sqs("SendMessage", {"QueueUrl": URL + INBOX, "MessageBody": frame_body(text), **ordering})

    # Clients.

    def _make_clients(self) -> None:
        for number in range(SUBSCRIBERS):
            self.actor(f"subscriber{number}", partial(self._subscriber, number), after=number)
        for number in range(PUBLISHERS):
            self.actor(f"publisher{number}", partial(self._publisher, number), after=2)
        for number in range(SESSIONS_THAT_PUBLISH):
            self.actor(f"session{number}", partial(self._session, number), after=3)
        for number in range(VISITORS):
            self.actor(f"visitor{number}", partial(self._visitor, number), after=5)
        self.actor("mute", self._connect_mutely, after=4)

    def _client(self, user: UserName = USER, connect: Callable[[], SimulatedSocket] | None = None) -> LiveClient:
        kernel = self.kernel
        clock = ClientClock(now=lambda: kernel.now, sleep=kernel.sleep, chance=kernel.random, epoch=lambda: kernel.now)
        return LiveClient(connect or self._connect, Login(REALM, user, SECRET), clock)

    def _connect(self) -> SimulatedSocket:
        return opened(self.gateway, self.request)

    def _visit(self) -> SimulatedSocket:
        self.visits.append(self._connect())
        return self.visits[-1]

    def _subscriber(self, number: int) -> None:
        match, uri = PATTERNS[number % len(PATTERNS)]
        cursor = PatternCursor(TopicPattern(match, uri), LastEvents(1000))
        follower = self.account.followers[f"subscriber{number}"] = Follower(cursor.pattern, cursor)
        client = self._client()
        client.follow(cursor)
        while self.kernel.now < self.end:
            try:
                event = client.receive(30)
            except (ConnectionLost, JoinRefused, RequestRefused):
                self.kernel.sleep(5)
                continue
            except SessionClosed:
                client.close()
                self.kernel.sleep(5)
                continue
            follower.connections = client.connections
            if event is not None:
                self.kernel.note(f"receives {event.topic} {event.sequence}: {event.payload.arguments}")
                follower.events.append((self.kernel.now, event))

    def _visitor(self, number: int) -> None:
        """Subscribe for some minutes, again and again: to the last event and what follows it, or to retained events."""
        kernel, start = self.kernel, LastEvents(1) if number else None
        while kernel.now < self.end - 600:
            client, until = self._client(connect=self._visit), kernel.now + kernel.between(30, 180)
            client.follow(PatternCursor(TopicPattern(MatchPolicy.PREFIX, "trial"), start, get_retained=start is None))
            with suppress(ConnectionLost, JoinRefused, RequestRefused, SessionClosed):
                while kernel.now < until:
                    client.receive(10)
            client.close()
            kernel.sleep(5)

    def _publisher(self, number: int) -> None:
        kernel, count = self.kernel, 0
        while kernel.now < self.end - 600:
            kernel.sleep(kernel.between(3, 60))
            for _ in range(1 + kernel.number(3)):
                count += 1
                self._publish(TOPICS[kernel.number(len(TOPICS))], f"sqs {number}.{count}", f"publisher{number}")

    def _publish(self, topic: str, text: str, sender: str) -> None:
        self.account.sent[text] = topic
        properties = MessageProperties.of_publication(RoutingKey(topic), json.dumps({"args": [text]}), {})
        message = properties.published(deduplication_id=text.replace(" ", "-"), order_by=self.order_by, sender=sender)
        for _ in range(3):
            try:
                self.call("sqs", "SendMessage", QueueUrl=URL + REALM, **outgoing(message))
            except (Refusal, BotoCoreError):
                self.kernel.sleep(1)
                continue
            return

    def _session(self, number: int) -> None:
        """Publish over WAMP, and wait for each acknowledgement."""
        kernel, count, client = self.kernel, 0, self._client()
        while kernel.now < self.end - 600:
            kernel.sleep(kernel.between(5, 90))
            count += 1
            topic, text = TOPICS[kernel.number(len(TOPICS))], f"wamp {number}.{count}"
            self.account.sent[text] = topic
            try:
                client.publish(topic, Payload((text,)), options={"retain": kernel.number(2) == 0})
            except (UnavailableError, JoinRefused, RequestRefused):
                continue
            self.account.confirmed[text] = kernel.now

    def _connect_mutely(self) -> None:
        while self.kernel.now < self.end - 300:
            with suppress(ConnectionLost):
                self.mute.append(self._connect())
            self.kernel.sleep(self.kernel.between(60, 300))

    def _cut_a_connection(self) -> None:
        kernel = self.kernel
        if self.gateway.open and kernel.is_faulty("a connection is cut", min(20 * kernel.rates.slow, 0.5)):
            sockets = sorted(self.gateway.open.values(), key=lambda one: one.connection)
            self.gateway.lose(sockets[kernel.number(len(sockets))])
