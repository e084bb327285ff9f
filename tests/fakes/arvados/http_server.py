"""The HTTP server of the stand-in's log endpoint, on loopback, with the controller's limit of requests at once."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from tests.fakes.arvados.log_endpoint import Answer, LogEndpoint

AT_ONCE, QUEUED = 16, 128  # MaxConcurrentRailsRequests, and the queue before it (lib/service/cmd.go)


class _Connection(asyncio.Protocol):
    """A keep-alive connection; requests have no bodies."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.received = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.server.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, self.received = self.received.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, _ = first.split(" ", 2)
            headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
            self.server.accept(self, method, path, headers)

    def send(self, method: str, answer: Answer) -> None:
        reason = HTTPStatus(answer.status).phrase
        lines = [f"HTTP/1.1 {answer.status} {reason}", f"Content-Length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self.server.endpoint.bytes_sent["headers"] += len(head)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(head + (b"" if method == "HEAD" else answer.body))


class Server:
    """The server. `seconds` is how long an answer takes, which is 11 ms with a real controller."""

    def __init__(self, endpoint: LogEndpoint, seconds: float = 0.0) -> None:
        self.endpoint = endpoint
        self.seconds = seconds
        self.url = ""
        self.waiting = 0
        self.refused = 0
        self.open: set[asyncio.Transport | None] = set()
        self.loop = asyncio.new_event_loop()
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.tasks: set[asyncio.Task[None]] = set()

    def accept(self, connection: _Connection, method: str, path: str, headers: dict[str, str]) -> None:
        """Answer now, after `seconds`, or with 503 and an empty body when too many requests wait."""
        if self.waiting >= AT_ONCE + QUEUED:
            self.refused += 1
            connection.send(method, Answer(503))
        elif self.seconds:
            self.waiting += 1
            task = self.loop.create_task(self._answer_later(connection, method, path, headers))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        else:
            connection.send(method, self.endpoint.answer(method, path, headers))

    async def _answer_later(self, connection: _Connection, method: str, path: str, headers: dict[str, str]) -> None:
        async with self.slots:
            await asyncio.sleep(self.seconds)
            connection.send(method, self.endpoint.answer(method, path, headers))
        self.waiting -= 1

    def cut_connections(self) -> None:
        """Close every open connection, as a restart of the controller does."""
        self.loop.call_soon_threadsafe(lambda: [one.abort() for one in list(self.open) if one])


@contextmanager
def serving(endpoint: LogEndpoint, *, seconds: float = 0.0) -> Iterator[Server]:
    """Serve an endpoint on a port of loopback until the end of the context."""
    server = Server(endpoint, seconds)
    listener = server.loop.run_until_complete(server.loop.create_server(lambda: _Connection(server), "127.0.0.1", 0))
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=server.loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.loop.call_soon_threadsafe(listener.close)
        server.cut_connections()
        server.loop.call_soon_threadsafe(server.loop.stop)
        thread.join()
        server.loop.close()
