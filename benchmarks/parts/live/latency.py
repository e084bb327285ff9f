"""Benchmark of event latency and delivery rate with 1, 10 and 100 subscribers."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from benchmarks.parts.live.following import following, wait
from benchmarks.shared.figures import Summary, summary
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import ConnectionLost, Login, join
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.live.wamp.codec import SUBPROTOCOL
from signalbox.live.wamp.messages import Payload, Publish
from signalbox.live.wamp.patterns import TopicPattern

SUBSCRIBERS = (1, 10, 100)
EVENTS = 20  # published one after another, for the latency
DELIVERIES = 500  # in total at full rate, from which the number of events follows
LEAST_EVENTS = 20
IN_FLIGHT = 10  # unacknowledged publications
TOPIC = "trial.benchmark"
END_SECONDS = 300.0
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Router:
    """A router under test, with the logins of subscribers and publisher."""

    name: str
    url: str
    login: Login
    publisher: Login

    def client(self) -> LiveClient:
        """Return a subscriber's client."""
        return LiveClient(connector(self.url, subprotocols=[SUBPROTOCOL]), self.login)


@dataclass(frozen=True, slots=True)
class Latency:
    """The results of a router: milliseconds from publisher to each subscriber, and deliveries per second."""

    router: str
    subscribers: int
    milliseconds: Summary
    acknowledged: Summary
    """Milliseconds to PUBLISHED."""
    deliveries_per_second: float
    missing: int
    """Deliveries at full rate that did not arrive."""


@dataclass(slots=True)
class _Subscriber:
    """A client in its own thread, and the time at which each event arrived."""

    client: LiveClient
    cursor: PatternCursor
    arrived: dict[int, float] = field(default_factory=dict)

    def follow(self, over: threading.Event) -> None:
        with self.client:
            self.client.follow(self.cursor)
            while not over.is_set():
                with suppress(ConnectionLost):  # with many concurrent logins, some time out and are repeated
                    self._receive()

    def _receive(self) -> None:
        event = self.client.receive(LOOK_SECONDS)
        if event is not None:
            self.arrived[int(str(event.payload.arguments[0]))] = time.perf_counter()


def measure(routers: Sequence[Router], say: Callable[[str], None]) -> list[Latency]:
    """Measure each router with each number of subscribers."""
    found = []
    for count in SUBSCRIBERS:
        for router in routers:
            say(f"{router.name}, {count} subscribers")
            found.append(_measured(router, count))
    return found


def _measured(router: Router, count: int) -> Latency:
    topic = f"{TOPIC}.{time.time_ns()}"
    subscribers = [_Subscriber(router.client(), PatternCursor(TopicPattern.parse(topic))) for _ in range(count)]
    with following(subscribers):
        sent, replied = _one_by_one(router, topic, subscribers)
        latencies = [one.arrived[number] - sent[number] for one in subscribers for number in sent]
        events = max(DELIVERIES // count, LEAST_EVENTS)
        begun = _at_full_rate(router, topic, range(EVENTS, EVENTS + events))
        expected = count * (EVENTS + events)
        wait(lambda: sum(len(one.arrived) for one in subscribers) >= expected, seconds=END_SECONDS)
    last = max(max(one.arrived.values()) for one in subscribers)
    arrived = sum(len(one.arrived) for one in subscribers) - count * EVENTS
    return Latency(
        router.name,
        count,
        _milliseconds(latencies),
        _milliseconds([replied[number] - sent[number] for number in sent]),
        arrived / (last - begun),
        count * events - arrived,
    )


def _one_by_one(
    router: Router, topic: str, subscribers: Sequence[_Subscriber]
) -> tuple[dict[int, float], dict[int, float]]:
    """Publish events, each after all subscribers have the previous one; return the times of sending and PUBLISHED."""
    sent, replied = dict[int, float](), dict[int, float]()
    with LiveClient(connector(router.url, subprotocols=[SUBPROTOCOL]), router.publisher) as publisher:
        publisher.receive(0)
        for number in range(EVENTS):
            sent[number] = time.perf_counter()
            publisher.publish(topic, Payload((number,)))
            replied[number] = time.perf_counter()
            if not wait(partial(_have, subscribers, number), seconds=END_SECONDS):
                raise UnavailableError(f"{router.name}: an event did not arrive within {END_SECONDS:.0f} s")
    return sent, replied


def _have(subscribers: Sequence[_Subscriber], number: int) -> bool:
    return all(number in one.arrived for one in subscribers)


def _at_full_rate(router: Router, topic: str, numbers: range) -> float:
    """Publish with at most `IN_FLIGHT` unacknowledged publications; return the start time."""
    socket = connector(router.url, subprotocols=[SUBPROTOCOL])()
    try:
        session = join(socket, router.publisher)
        begun, sent = time.perf_counter(), 0
        deadline = time.monotonic() + END_SECONDS
        while len(session.replies) < len(numbers) and time.monotonic() < deadline:
            if sent < len(numbers) and sent - len(session.replies) < IN_FLIGHT:
                payload = Payload((numbers[sent],))
                session.send_request(partial(Publish, options={"acknowledge": True}, topic=topic, payload=payload))
                sent += 1
            else:
                session.read(LOOK_SECONDS)
    finally:
        socket.close()
    return begun


def _milliseconds(seconds: Sequence[float]) -> Summary:
    found = summary([value * 1000 for value in seconds])
    assert found is not None
    return found
