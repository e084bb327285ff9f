"""How long an event takes from its publisher to 1, 10 and 100 subscribers, and how many are delivered in a second."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from benchmarks.figures import Summary, summary
from benchmarks.live_following import following, wait
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import Cursor
from signalbox.clients.live.session import ConnectionLost, Login, join
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.live.wamp.messages import Payload, Publish
from signalbox.live.wamp.patterns import TopicPattern

SUBSCRIBERS = (1, 10, 100)
EVENTS = 20  # one after another
DELIVERIES = 500  # of as many events as that takes
LEAST_EVENTS = 20
IN_FLIGHT = 10  # publications that are not acknowledged yet
TOPIC = "trial.benchmark"
END_SECONDS = 300.0
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Router:
    """A router, and who joins it."""

    name: str
    url: str
    login: Login
    publisher: Login

    def client(self) -> LiveClient:
        """Return a client that may subscribe."""
        return LiveClient(connector(self.url), self.login)


@dataclass(frozen=True, slots=True)
class Latency:
    """A router with so many subscribers: milliseconds from publisher to each of them, and deliveries a second."""

    router: str
    subscribers: int
    milliseconds: Summary
    acknowledged: Summary
    """Milliseconds to PUBLISHED."""
    deliveries_per_second: float
    missing: int
    """Events that did not come, of those at full rate."""


@dataclass(slots=True)
class _Subscriber:
    """A client in a thread of its own, and when each event came."""

    client: LiveClient
    cursor: Cursor
    came: dict[int, float] = field(default_factory=dict)

    def follow(self, over: threading.Event) -> None:
        with self.client:
            self.client.follow(self.cursor)
            while not over.is_set():
                with suppress(ConnectionLost):  # while so many begin at once, not each begins in time
                    self._receive()

    def _receive(self) -> None:
        event = self.client.receive(LOOK_SECONDS)
        if event is not None:
            self.came[int(str(event.payload.arguments[0]))] = time.perf_counter()


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
    subscribers = [_Subscriber(router.client(), Cursor(TopicPattern.parse(topic))) for _ in range(count)]
    with following(subscribers):
        sent, replied = _one_by_one(router, topic, subscribers)
        latencies = [one.came[number] - sent[number] for one in subscribers for number in sent]
        events = max(DELIVERIES // count, LEAST_EVENTS)
        begun = _at_full_rate(router, topic, range(EVENTS, EVENTS + events))
        wanted = count * (EVENTS + events)
        wait(lambda: sum(len(one.came) for one in subscribers) >= wanted, seconds=END_SECONDS)
    last = max(max(one.came.values()) for one in subscribers)
    came = sum(len(one.came) for one in subscribers) - count * EVENTS
    return Latency(
        router.name,
        count,
        _milliseconds(latencies),
        _milliseconds([replied[number] - sent[number] for number in sent]),
        came / (last - begun),
        count * events - came,
    )


def _one_by_one(
    router: Router, topic: str, subscribers: Sequence[_Subscriber]
) -> tuple[dict[int, float], dict[int, float]]:
    """Publish some events, each when all subscribers have the one before; return when they were sent and replied to."""
    sent, replied = dict[int, float](), dict[int, float]()
    with LiveClient(connector(router.url), router.publisher) as publisher:
        publisher.receive(0)
        for number in range(EVENTS):
            sent[number] = time.perf_counter()
            publisher.publish(topic, Payload((number,)))
            replied[number] = time.perf_counter()
            if not wait(partial(_have, subscribers, number), seconds=END_SECONDS):
                raise UnavailableError(f"{router.name}: an event has not come within {END_SECONDS:.0f} s")
    return sent, replied


def _have(subscribers: Sequence[_Subscriber], number: int) -> bool:
    return all(number in one.came for one in subscribers)


def _at_full_rate(router: Router, topic: str, numbers: range) -> float:
    """Publish as fast as replies allow, of which a few are awaited at a time; return when it began."""
    socket = connector(router.url)()
    try:
        session = join(socket, router.publisher)
        begun, asked = time.perf_counter(), 0
        deadline = time.monotonic() + END_SECONDS
        while len(session.replies) < len(numbers) and time.monotonic() < deadline:
            if asked < len(numbers) and asked - len(session.replies) < IN_FLIGHT:
                payload = Payload((numbers[asked],))
                session.send_request(partial(Publish, options={"acknowledge": True}, topic=topic, payload=payload))
                asked += 1
            else:
                session.read(LOOK_SECONDS)
    finally:
        socket.close()
    return begun


def _milliseconds(seconds: Sequence[float]) -> Summary:
    found = summary([value * 1000 for value in seconds])
    assert found is not None
    return found
