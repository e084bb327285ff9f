"""A TCP proxy in front of a server, whose connections can be cut like those of a failing network."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit, urlunsplit

CHUNK_BYTES = 65_536


@dataclass(slots=True)
class TcpProxy:
    """A proxy that forwards the connections of a local port."""

    target: tuple[str, int]
    listening: socket.socket
    connections: int = 0
    _pairs: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        port: int = self.listening.getsockname()[1]
        return port

    def url(self, url: str) -> str:
        """Return a URL of the target with the proxy's host and port."""
        return urlunsplit(urlsplit(url)._replace(netloc=f"127.0.0.1:{self.port}"))

    def cut(self) -> int:
        """Cut all connections; return their number."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _cut(pair)
        return len(pairs)

    def cut_one(self, chance: Random) -> int:
        """Cut a random connection; return 1, or 0 if there is no connection."""
        with self._lock:
            if not self._pairs:
                return 0
            pair = self._pairs.pop(chance.randrange(len(self._pairs)))
        _cut(pair)
        return 1

    def serve(self) -> None:
        with suppress(OSError):  # the socket was closed
            while True:
                near, _ = self.listening.accept()
                threading.Thread(target=self._forward, args=(near,), daemon=True).start()

    def _forward(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self.target, timeout=10)
        except OSError:
            _close(near)
            return
        far.settimeout(None)
        with self._lock:
            self._pairs.append((near, far))
            self.connections += 1
        threading.Thread(target=self._copy, args=(far, near, (near, far)), daemon=True).start()
        self._copy(near, far, (near, far))

    def _copy(self, source: socket.socket, sink: socket.socket, pair: tuple[socket.socket, socket.socket]) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                sink.sendall(data)
        with self._lock:
            if pair in self._pairs:
                self._pairs.remove(pair)
        _cut(pair)


def _cut(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        _close(end)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def tcp_proxy(url: str) -> Iterator[TcpProxy]:
    """Run a proxy in front of the server of a URL."""
    parts = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        made = TcpProxy((parts.hostname or "", parts.port or 80), listening)
        threading.Thread(target=made.serve, daemon=True).start()
        try:
            yield made
        finally:
            _close(listening)
            made.cut()
