"""A TLS endpoint on loopback in front of a server without TLS, for clients that connect by `wss` only."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOOPBACK = "127.0.0.1"
CHUNK = 65_536


@dataclass
class TlsEndpoint:
    """Forwards TLS connections to a server. While it is `closed`, it accepts none.

    It sends no session tickets: a client that reads and writes a TLS connection from two threads, as the threaded
    client of `websockets` does, may hang when one arrives (python/cpython#77271).
    """

    target: tuple[str, int]
    certificate: Path
    port: int = 0
    closed: bool = False
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def start(self) -> None:
        """Listen on a free port, in a thread."""
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def stop(self) -> None:
        """Cut all connections, and end the thread."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def cut(self) -> None:
        """Close, and cut the connections that are open."""
        self.closed = True
        asyncio.run_coroutine_threadsafe(self._abort(), self._loop).result()

    async def _listen(self) -> int:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        context.num_tickets = 0
        server = await asyncio.start_server(self._forward_both, LOOPBACK, 0, ssl=context)
        return int(server.sockets[0].getsockname()[1])

    async def _abort(self) -> None:
        for writer in self._writers:
            if not writer.is_closing():  # Python 3.11.2 cannot abort a TLS transport that was closed twice
                writer.transport.abort()
        self._writers.clear()

    async def _forward_both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self.target)
        self._writers += [writer, server_writer]
        if self.closed:
            await self._abort()
        await asyncio.gather(_forward(reader, server_writer), _forward(server_reader, writer))


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(CHUNK):
            target.write(chunk)
            await target.drain()
    target.close()


@contextmanager
def tls_endpoint(url: str, folder: Path) -> Iterator[TlsEndpoint]:
    """Provide a TLS endpoint in front of a server's URL."""
    parts = urlsplit(url)
    endpoint = TlsEndpoint((parts.hostname or LOOPBACK, parts.port or 80), _certificate(folder))
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.stop()


def _certificate(folder: Path) -> Path:
    """Write a certificate of loopback with its key; it is its own authority."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, LOOPBACK)])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(LOOPBACK))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "loopback.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
