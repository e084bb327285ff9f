"""Simulated WebSocket connections of API Gateway: frames to the inbox, posts to clients, and lost connections."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from signalbox.clients.live.session import ConnectionLost
from tests.simulation.functions import Failure, Function
from tests.simulation.kernel import Kernel, Task
from tests.simulation.services import Answer, Refusal, Request

CONNECTIONS = "apigatewaymanagementapi"  # the service
ENTERED = 0.01  # the time of a message from the gateway to the client
CLOSED = object()
SUBSCRIBED, EVENT = "33", "36"  # of WAMP


class SimulatedGateway:
    """The `@connections` API; `put_frame` puts a frame into the inbox of a connection, as the route's mapping does."""

    def __init__(self, kernel: Kernel, connect: Function, put_frame: Callable[[str, str, str], None]) -> None:
        self.kernel, self.connect, self.put_frame = kernel, connect, put_frame
        self.open: dict[str, SimulatedSocket] = {}
        self.early: list[str] = []

    def __call__(self, operation: str, request: Request) -> Answer:
        socket = self.open.get(request["ConnectionId"])
        if socket is None:
            raise Refusal("GoneException", status=410)
        if operation == "DeleteConnection":
            self.lose(socket)
            return {}
        socket.arrive(request["Data"].decode(errors="surrogatepass"))
        return {}

    def lose(self, socket: "SimulatedSocket") -> None:
        """End a connection, and invoke the function for `$disconnect`, as API Gateway does at best effort."""
        if self.open.pop(socket.connection, None) is None:
            return
        socket.arrive(CLOSED)
        self.kernel.note(f"connection {socket.connection} is lost")
        if not self.kernel.is_faulty("a $disconnect is lost", self.kernel.rates.unknown_queue):
            event = self.event("$disconnect", socket.connection)
            self.connect.invoke(event, f"disconnect {socket.connection}", lambda _: None)

    def event(self, route: str, connection: str) -> dict[str, Any]:
        context = {
            "routeKey": route,
            "connectionId": connection,
            "requestId": self.kernel.uuid(),
            "requestTimeEpoch": round(self.kernel.now * 1000),
            "identity": {"sourceIp": "192.0.2.1"},
        }
        return {"headers": {"Sec-WebSocket-Protocol": "wamp.2.json"}, "requestContext": context}


@dataclass(eq=False)
class SimulatedSocket:
    """`Socket`: a client's end of a connection, used by one task."""

    gateway: SimulatedGateway
    connection: str
    arrived: deque[Any] = field(default_factory=deque)
    subscriptions: dict[str, float] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    waiting: Task | None = None
    waits: int = 0

    def arrive(self, message: Any) -> None:
        self.gateway.kernel.after(ENTERED, partial(self._enter, message))

    def _enter(self, message: Any) -> None:
        self.arrived.append(message)
        self._follow(message)
        if message is not CLOSED:
            self.gateway.kernel.note(f"{self.connection} gets {message}")
        if self.waiting is not None:
            task, self.waiting = self.waiting, None
            self.gateway.kernel.resume(task)

    def _follow(self, message: Any) -> None:
        """Note the subscriptions with the times of their SUBSCRIBED, the events, and one of no subscription."""
        kind, _, rest = message[1:].partition(",") if message is not CLOSED else ("", "", "")
        if kind == SUBSCRIBED:
            self.subscriptions.setdefault(rest.partition(",")[2].rstrip("]"), self.gateway.kernel.now)
        elif kind == EVENT and rest.partition(",")[0] in self.subscriptions:
            self.events.append(message)
        elif kind == EVENT:
            self.gateway.early.append(f"{self.connection} got {message[:200]}")

    def send(self, text: str) -> None:
        kernel = self.gateway.kernel
        kernel.sleep(ENTERED)
        if self.connection not in self.gateway.open:
            raise ConnectionLost("the connection is lost")
        if kernel.is_faulty("a frame does not reach the inbox", kernel.rates.refused):
            self._refuse()
        kernel.note(f"sends {text}")
        try:
            self.gateway.put_frame(self.connection, text, kernel.uuid())
        except Refusal:
            self._refuse()

    def _refuse(self) -> NoReturn:
        """End the connection: the gateway answers with an error, upon which clients give it up."""
        self.gateway.lose(self)
        raise ConnectionLost("a frame was refused")

    def receive(self, timeout_seconds: float | None) -> str | None:
        kernel = self.gateway.kernel
        if not self.arrived:
            self.waiting = kernel.current
            self.waits += 1
            if timeout_seconds is not None:
                kernel.after(timeout_seconds, partial(self._give_up, self.waits))
            kernel.pause()
        if not self.arrived:
            return None
        message = self.arrived.popleft()
        if message is CLOSED:
            self.arrived.appendleft(CLOSED)
            raise ConnectionLost("the connection is lost")
        return str(message)

    def _give_up(self, wait: int) -> None:
        if self.waiting is not None and self.waits == wait:
            task, self.waiting = self.waiting, None
            self.gateway.kernel.resume(task)

    def close(self) -> None:
        self.gateway.lose(self)


def opened(gateway: SimulatedGateway, request: Callable[[Function, Any], Any]) -> SimulatedSocket:
    """Open a connection, as a client does. Raises `ConnectionLost`."""
    kernel = gateway.kernel
    socket = SimulatedSocket(gateway, kernel.bytes(8).hex())
    answer = request(gateway.connect, gateway.event("$connect", socket.connection))
    if isinstance(answer, Failure) or answer["statusCode"] != 200:
        raise ConnectionLost("the connection is refused")
    gateway.open[socket.connection] = socket
    kernel.note(f"opens connection {socket.connection}")
    return socket
