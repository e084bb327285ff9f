"""Programs of WAMP: Signalbox's client for both routers, and crossbar's ways of publishing and of event history."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.parts.races.accounts import Delivery
from benchmarks.shared.stage import FOLDER
from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import local_deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.clients.live.session import ClientSession, ConnectionLost, JoinRefused, Login, join
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.live.wamp.codec import SUBPROTOCOL
from signalbox.live.wamp.messages import Payload, Publish
from signalbox.live.wamp.options import BackfillStart
from signalbox.live.wamp.patterns import TopicPattern

# A router that has just been started does not know its realms yet.
PASSING = (UnavailableError, JoinRefused, BotoCoreError, ClientError)
PAUSE_SECONDS = 0.2
ALL_EVENTS = 10_000


def live_client(url: str, login: Login) -> LiveClient:
    """Return our client for either router; crossbar knows none of our subprotocols but WAMP's."""
    return LiveClient(connector(url, subprotocols=[SUBPROTOCOL]), login)


@dataclass(slots=True)
class WampReceiver:
    """A subscriber of topics by our client, which continues from its cursors."""

    client: LiveClient
    topics: Sequence[str]
    start: BackfillStart | None = None
    waiting: deque[Delivery] = field(default_factory=deque)

    @property
    def losses(self) -> int:
        """The number of lost connections."""
        return max(self.client.connections - 1, 0)

    def subscribe(self) -> None:
        """Subscribe; keep the events that arrive meanwhile."""
        cursors = [PatternCursor(TopicPattern.parse(topic), self.start) for topic in self.topics]
        for cursor in cursors:
            self.client.follow(cursor)
        while not all(cursor.is_caught_up for cursor in cursors):
            with _trying():
                self.waiting.extend(map(_delivery, self.client.backfill()))

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Return the next event."""
        if self.waiting:
            return self.waiting.popleft()
        with _trying():
            event = self.client.receive(timeout_seconds)
            return _delivery(event) if event else None
        return None

    def close(self) -> None:
        """Disconnect."""
        self.client.close()


@dataclass(slots=True)
class HistoryReceiver(WampReceiver):
    """A subscriber that reads crossbar's event history after each connection, before the newer events."""

    _read_of: int = 0
    """The connection whose history was read last."""
    _known: set[str] = field(default_factory=set)

    def subscribe(self) -> None:
        """Subscribe, and read the history."""
        WampReceiver.subscribe(self)
        self._catch_up()

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Return the next event that is in neither the history nor the events before."""
        found = WampReceiver.receive(self, timeout_seconds)
        if found is not None:
            self.waiting.appendleft(found)
        if self._read_of != self.client.connections:
            self._catch_up()
        if self.waiting and (first := self.waiting.popleft()).publication not in self._known:
            self._known.add(first.publication)
            return first
        return None

    def _catch_up(self) -> None:
        """Read all topics' history of one connection."""
        while self._read_of != self.client.connections:
            with _trying():
                connection = self.client.connections
                events = [one for topic in self.topics for one in self._history(topic)]
                self.waiting.extendleft(reversed(events))
                self._read_of = connection

    def _history(self, topic: str) -> Iterator[Delivery]:
        """Return the kept events of a topic, the oldest first."""
        (subscription,) = self.client.call("wamp.subscription.lookup", Payload((topic,))).arguments
        reply: Any = self.client.call("wamp.subscription.get_events", Payload((subscription, ALL_EVENTS))).arguments
        for event in reversed(reply[0]):
            yield Delivery(topic, str(event["publication"]), event["args"][0])


@dataclass(slots=True)
class AcknowledgedSender:
    """A publisher that publishes an event again, as another publication, until one is acknowledged."""

    client: LiveClient

    def publish(self, topic: str, number: int) -> None:
        """Publish until PUBLISHED."""
        while True:
            with _trying():
                self.client.publish(topic, Payload((number,)))
                return

    def close(self) -> None:
        """Disconnect."""
        self.client.close()


@dataclass(slots=True)
class UnacknowledgedSender:
    """A publisher as PUBLISH is by default: without a reply."""

    url: str
    login: Login
    session: ClientSession | None = None

    def publish(self, topic: str, number: int) -> None:
        """Send PUBLISH; connect again if that fails."""
        while True:
            with _trying():
                self.session = self.session or join(connector(self.url, subprotocols=[SUBPROTOCOL])(), self.login)
                try:
                    self.session.send_request(partial(Publish, options={}, topic=topic, payload=Payload((number,))))
                except ConnectionLost:
                    self.close()
                    raise
                return

    def close(self) -> None:
        """Disconnect."""
        if self.session is not None:
            self.session.socket.close()
            self.session = None


@dataclass(slots=True)
class QueueSender:
    """A publisher over SQS, whose repetitions have the deduplication id of the first try."""

    client: ExchangeClient
    exchange: str

    @classmethod
    def of(cls, local: Mapping[str, Any], endpoint_url: str) -> "QueueSender":
        """Return the publisher of a stage, which is at this endpoint."""
        deployment = local_deployment({**local, "endpoint_url": endpoint_url}, folder=FOLDER)
        return cls(client_of(deployment), local["realm"])

    def publish(self, topic: str, number: int) -> None:
        """Publish until SQS has the message."""
        request = PublishRequest(topic, str(number), deduplication_id=f"{topic}-{number}")
        while True:
            with _trying():
                (result,) = self.client.publish_all(self.exchange, [request])
                if result.message_id is not None:
                    return

    def close(self) -> None:
        """Do nothing: HTTP has no session."""


@contextmanager
def _trying() -> Iterator[None]:
    """Suppress errors after which a further try may succeed, and pause."""
    try:
        yield
    except PASSING:
        time.sleep(PAUSE_SECONDS)


def _delivery(event: ReceivedEvent) -> Delivery:
    return Delivery(
        str(event.topic), str(event.publication), int(str(event.payload.arguments[0])), skipped=event.skipped > 0
    )
