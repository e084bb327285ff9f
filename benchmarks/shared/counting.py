"""A TCP proxy in front of the emulator that counts AWS calls by name and changes nothing."""

import re
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

BUFFER_BYTES = 65536
SQS = "AmazonSQS."
FORM = re.compile(rb"(?:^|&)Action=(\w+)")
"""The operation in a body of SQS's query protocol, which kombu uses."""


class Tap(socketserver.ThreadingTCPServer):
    """A forwarding server; `calls` counts by `Service.Operation`, the name in AWS's JSON protocols."""

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Relay)
        target = urlsplit(endpoint_url)
        self.behind = (str(target.hostname), int(target.port or 80))
        self.calls: Counter[str] = Counter()

    @property
    def endpoint_url(self) -> str:
        """Return the endpoint URL for clients."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def sqs_calls(self) -> Counter[str]:
        """Return the SQS calls so far, by operation."""
        return Counter({name.removeprefix(SQS): count for name, count in self.calls.items() if name.startswith(SQS)})


class _Relay(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        tap = self.server
        assert isinstance(tap, Tap)
        with suppress(OSError), socket.create_connection(tap.behind) as behind:
            threading.Thread(target=_copy, args=(behind, self.connection), daemon=True).start()
            while head := self._head():
                headers = _headers(head)
                body = self.rfile.read(int(headers.get("content-length", 0)))
                tap.calls[_call(headers.get("x-amz-target", ""), body)] += 1
                behind.sendall(head + body)

    def _head(self) -> bytes:
        lines = bytearray()
        while (line := self.rfile.readline()) not in (b"", b"\r\n"):
            lines += line
        return bytes(lines + b"\r\n") if lines else b""


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _call(target: str, body: bytes) -> str:
    """Return `Service.Operation` without the service version that some targets contain."""
    if not target and (form := FORM.search(body)):
        return SQS + form[1].decode()
    service, _, operation = target.partition(".")
    return f"{service.partition('_')[0]}.{operation}" if operation else "other"


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while received := source.recv(BUFFER_BYTES):
            target.sendall(received)
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def tapped(endpoint_url: str) -> Iterator[Tap]:
    """Run a counting proxy on a free port in front of this endpoint."""
    with Tap(endpoint_url) as tap:
        thread = threading.Thread(target=tap.serve_forever, daemon=True)
        thread.start()
        try:
            yield tap
        finally:
            tap.shutdown()
            thread.join()
