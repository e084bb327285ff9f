"""Arvados' Python SDK in a virtual environment of its own, and a TLS endpoint for it: it connects by `wss` only."""

import contextlib
import fcntl
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from signalbox.local import setup
from signalbox.local.files import CHECKOUT
from tests import wheels
from tests.patience import scaled

SDK = "arvados-python-client==3.2.1"
FOLDER = CHECKOUT / ".signalbox" / "arvados"
PROGRAM = Path(__file__).with_name("arvados_client.py")
LOOPBACK = "127.0.0.1"
CHUNK = 65_536
EVENT_SECONDS = 60.0


def environment() -> Path:
    """Return the SDK's virtual environment, created once."""
    venv = FOLDER / "venv"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = setup.stamp(venv, [Path(__file__)])
        if not setup.is_current(venv, stamp):
            shutil.rmtree(venv, ignore_errors=True)
            wheels.uv("venv", venv)
            wheels.uv("pip", "install", "--python", venv / "bin" / "python", SDK)
            (venv / "stamp").write_text(stamp)
    return venv


@dataclass
class TlsEndpoint:
    """Forwards TLS connections to a server on loopback; while it is `closed`, it refuses them and cuts those it has."""

    target: tuple[str, int]
    certificate: Path
    listener: socket.socket = field(init=False)
    closed: bool = False
    pairs: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        while True:
            try:
                accepted, _ = self.listener.accept()
            except OSError:
                return
            if self.closed:
                accepted.close()
                continue
            with contextlib.suppress(OSError):
                client = context.wrap_socket(accepted, server_side=True)
                server = socket.create_connection(self.target)
                self.pairs.append((client, server))
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_forward, args=(one, other), daemon=True).start()

    def cut(self) -> None:
        """Refuse new connections, and cut those that are open."""
        self.closed = True
        for pair in self.pairs:
            for one in pair:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        self.pairs.clear()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(CHUNK):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def tls_endpoint(url: str, folder: Path) -> Iterator[TlsEndpoint]:
    """Provide a TLS endpoint in front of a server's URL."""
    parts = urlsplit(url)
    endpoint = TlsEndpoint((parts.hostname or LOOPBACK, parts.port or 80), _certificate(folder))
    with socket.create_server((LOOPBACK, 0)) as endpoint.listener:
        threading.Thread(target=endpoint.serve, daemon=True).start()
        yield endpoint
        endpoint.cut()
        endpoint.listener.shutdown(socket.SHUT_RDWR)


@dataclass
class SdkClient:
    """The SDK's program, with the events that it prints."""

    process: subprocess.Popen[str]
    events: "Queue[Any]" = field(default_factory=Queue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def ask(self, **command: object) -> None:
        """Send a command to the program."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def next(self, number: int) -> list[Any]:
        """Return the next events."""
        found: list[Any] = []
        with contextlib.suppress(Empty):
            while len(found) < number:
                found.append(self.events.get(timeout=scaled(EVENT_SECONDS)))
        assert len(found) == number, found
        return found


@contextmanager
def sdk_client(endpoint: TlsEndpoint, path: str, token: str, filters: object) -> Iterator[SdkClient]:
    """Run the SDK's program, which trusts the endpoint's certificate."""
    url = f"wss://{LOOPBACK}:{endpoint.port}{path}"
    command = [str(environment() / "bin" / "python"), str(PROGRAM), url, token, json.dumps(filters)]
    variables = {"PATH": os.environ["PATH"], "HOME": str(FOLDER), "SSL_CERT_FILE": str(endpoint.certificate)}
    with subprocess.Popen(  # noqa: S603 - ours
        command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield SdkClient(process)
        finally:
            process.kill()


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
