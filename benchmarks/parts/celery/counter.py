"""A forwarder on loopback that counts the calls of AWS which pass through it."""

import re
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

CALL = re.compile(rb"x-amz-target: *AmazonSQS\.(\w+)|\bAction=(\w+)", re.IGNORECASE)
CHUNK = 65536


class CountingForwarder(socketserver.ThreadingTCPServer):
    """Forwards connections to a port of this machine."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.to = ("127.0.0.1", port)
        self.calls: Counter[str] = Counter()

    @property
    def port(self) -> int:
        """The port that programs use."""
        return int(self.server_address[1])


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        forwarder = cast("CountingForwarder", self.server)
        with socket.create_connection(forwarder.to) as other:
            back = threading.Thread(target=_copy, args=(other, self.request), daemon=True)
            back.start()
            while data := self.request.recv(CHUNK):
                forwarder.calls.update((json or form).decode() for json, form in CALL.findall(data))
                other.sendall(data)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
    except OSError:
        return  # the program is gone


@contextmanager
def counting(port: int) -> Iterator[CountingForwarder]:
    """Forward to a port while the context lasts."""
    with CountingForwarder(port) as forwarder:
        threading.Thread(target=forwarder.serve_forever, daemon=True).start()
        try:
            yield forwarder
        finally:
            forwarder.shutdown()
