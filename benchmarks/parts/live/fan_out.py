"""Deliveries a second of a router and its processor time for each, with 1, 10 and 100 subscribers, next to crossbar.

One thread reads all connections and counts a marker in the bytes that arrive, so that the router is what takes time and
not its clients.
"""

import selectors
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from benchmarks.parts.live import crossbar_side, rules
from benchmarks.parts.live.publishing import CROSSBAR, OURS
from benchmarks.shared.processes import processor_seconds
from signalbox.clients.live.session import ClientSession, ConnectionLost, Login, join
from signalbox.errors import UnavailableError
from signalbox.live.wamp.codec import SUBPROTOCOL
from signalbox.live.wamp.messages import Payload, Publish, RequestId, Subscribe
from tests.fakes import live_router

SUBSCRIBERS = (1, 10, 100)
ROUNDS = 5
DELIVERIES = 20_000  # of a round
IN_FLIGHT = 10  # unacknowledged publications
TOPIC, MARKER, PUBLISHED = "trial.fan", b'"@@@@"', b"[17,"
RECEIVED_BYTES = 1 << 18
REPLY_SECONDS, ROUND_SECONDS = 30.0, 60.0


@dataclass(frozen=True, slots=True)
class FanOut:
    """The medians of a router's rounds."""

    router: str
    subscribers: int
    deliveries_per_second: float
    microseconds: float
    """Of a processor, which all processes of the router take together for a delivery."""


@dataclass(frozen=True, slots=True)
class Router:
    """A router, its process, and the login of all its clients."""

    name: str
    url: str
    pid: int
    login: Login


@dataclass(slots=True)
class CountingSocket:
    """A `Socket` whose bytes can also be read as they arrive."""

    url: str
    connection: socket.socket = field(init=False)
    protocol: ClientProtocol = field(init=False)
    _tail: bytes = b""

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        self.connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=REPLY_SECONDS)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.protocol = ClientProtocol(parse_uri(self.url), subprotocols=[Subprotocol(SUBPROTOCOL)])
        self.protocol.send_request(self.protocol.connect())
        self._flush()
        while not self.protocol.events_received():
            self._feed()

    def send(self, text: str) -> None:
        """Send a text frame."""
        self.protocol.send_text(text.encode())
        self._flush()

    def receive(self, timeout_seconds: float | None) -> str | None:  # noqa: ARG002 - of the Protocol
        """Return the next text frame."""
        while True:
            for event in self.protocol.events_received():
                if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    return bytes(event.data).decode()
            self._feed()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def count(self, marker: bytes) -> int:
        """Receive bytes, and return how often they contain a marker."""
        received = self.connection.recv(RECEIVED_BYTES)
        if not received:
            raise ConnectionLost("the router has closed the connection")
        searched = self._tail + received
        self._tail = searched[-(len(marker) - 1) :]
        return searched.count(marker)

    def _feed(self) -> None:
        self.protocol.receive_data(self.connection.recv(RECEIVED_BYTES))
        self._flush()

    def _flush(self) -> None:
        for data in self.protocol.data_to_send():
            self.connection.sendall(data)


def measure(say: Callable[[str], None]) -> list[FanOut]:
    """Measure the rules and crossbar alternately."""
    with ExitStack() as stack:
        routers = [ours(stack), *crossbar(stack, say)]
        return [one for count in SUBSCRIBERS for one in _measured(routers, count, say)]


def ours(stack: ExitStack) -> Router:
    """Run the rules in a process of their own."""
    process = stack.enter_context(rules.running(1))
    return Router(OURS, process.urls[0], process.pid, Login(live_router.REALM, rules.USER, live_router.TICKET))


def crossbar(stack: ExitStack, say: Callable[[str], None]) -> list[Router]:
    """Run crossbar, if it can be installed."""
    try:
        crossbar_side.install()
        process = stack.enter_context(crossbar_side.running())
    except crossbar_side.NoCrossbar as reason:
        say(f"without crossbar: {reason}")
        return []
    return [Router(CROSSBAR, process.url, process.pid, Login(crossbar_side.REALM))]


def _measured(routers: Sequence[Router], count: int, say: Callable[[str], None]) -> list[FanOut]:
    rates: dict[str, list[float]] = {one.name: [] for one in routers}
    times: dict[str, list[float]] = {one.name: [] for one in routers}
    for number in range(ROUNDS + 1):
        for router in routers[:: 1 if number % 2 else -1]:
            say(f"{router.name}, {count} subscribers, round {number} of {ROUNDS}")
            rate, microseconds = _round(router, count)
            if number:  # the first round warms up
                rates[router.name].append(rate)
                times[router.name].append(microseconds)
    return [
        FanOut(one.name, count, statistics.median(rates[one.name]), statistics.median(times[one.name]))
        for one in routers
    ]


def _round(router: Router, count: int) -> tuple[float, float]:
    """Return the deliveries a second, and the microseconds of a processor for each."""
    topic = f"{TOPIC}.{time.time_ns()}"
    with ExitStack() as stack:
        subscribers = [subscribed(stack, router, topic) for _ in range(count)]
        publisher = stack.enter_context(closing(CountingSocket(router.url)))
        session = join(publisher, router.login)
        before, begun = processor_seconds(router.pid), time.perf_counter()
        deliveries = DELIVERIES // count * count
        _deliver(session, publisher, subscribers, topic, deliveries)
        seconds = time.perf_counter() - begun
        return deliveries / seconds, (processor_seconds(router.pid) - before) / deliveries * 1e6


def subscribed(stack: ExitStack, router: Router, topic: str) -> CountingSocket:
    """Open a connection that is subscribed to a topic."""
    subscriber = stack.enter_context(closing(CountingSocket(router.url)))
    session = join(subscriber, router.login)
    request = session.send_request(partial(Subscribe, options={}, topic=topic))
    while request not in session.replies:
        session.read(REPLY_SECONDS)
    return subscriber


def _deliver(
    session: ClientSession,
    publisher: CountingSocket,
    subscribers: Sequence[CountingSocket],
    topic: str,
    deliveries: int,
) -> None:
    """Publish at full rate until all subscribers have all events."""
    events, sent, acknowledged, arrived = deliveries // len(subscribers), 0, 0, 0
    deadline = time.monotonic() + ROUND_SECONDS
    with selectors.DefaultSelector() as selector:
        for one in (publisher, *subscribers):
            selector.register(one.connection, selectors.EVENT_READ, one)
        while arrived < deliveries:
            while sent < events and sent - acknowledged < IN_FLIGHT:
                session.send_request(partial(_publish, topic=topic))
                sent += 1
            for key, _ in selector.select(REPLY_SECONDS):
                if key.data is publisher:
                    acknowledged += publisher.count(PUBLISHED)
                else:
                    arrived += key.data.count(MARKER)
            if time.monotonic() > deadline:
                raise UnavailableError(f"{deliveries - arrived} of {deliveries} events did not arrive")


def _publish(request: RequestId, topic: str) -> Publish:
    return Publish(request, {"acknowledge": True}, topic, Payload(("@@@@",)))
