"""An HTTPS server with a CA of its own, whose answers a test gives; the real API server is in `tests/kubernetes`."""

import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
PEM = serialization.Encoding.PEM


class Authority:
    """A CA like that of EKS: a name and basic constraints, and no key identifier."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._certificate(self.name, self.key.public_key()).add_extension(constraints, critical=True)
        self.pem = builder.sign(self.key, hashes.SHA256()).public_bytes(PEM).decode()

    def _certificate(self, name: x509.Name, key) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return x509.CertificateBuilder(
            self.name, name, key, x509.random_serial_number(), now - timedelta(hours=1), now + timedelta(hours=1)
        )

    def server(self, folder: Path, address: str = HOST) -> ssl.SSLContext:
        """Return the TLS context of a server with this address."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        certificate = self._certificate(name, key.public_key()).add_extension(names, critical=False)
        file = folder / f"server-{address}.pem"
        file.write_bytes(
            key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            + certificate.sign(self.key, hashes.SHA256()).public_bytes(PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


@dataclass(frozen=True)
class Request:
    """A request as the server got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: object


@dataclass
class Answer:
    """An answer of the server; without a status it never comes."""

    status: int | None = 200
    body: object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    """A `Content-Length` other than that of the body: the connection ends before it."""
    pause: float = 0
    """The seconds before each byte of the body."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Write nothing: some tests have clients that close the connection."""


class ApiServer:
    """A server that gives its answers in order, and the last one for ever."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self.answers = [Answer()]
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self.server = _Server(address, self._handler())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def endpoint(self) -> str:
        return f"https://{HOST}:{self.server.server_port}"

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.loads(content) if content else None
                server.requests.append(Request(self.command, self.path, dict(self.headers), body))
                answer = server.next_answer()
                if answer.status is None:
                    server.closing.wait()
                    return
                body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(body) if answer.length is None else answer.length))
                for header in answer.headers.items():
                    self.send_header(*header)
                self.end_headers()
                for part in [body[one : one + 1] for one in range(len(body))] if answer.pause else [body]:
                    time.sleep(answer.pause)
                    self.wfile.write(part)
                self.close_connection = answer.length is not None

            do_PATCH = do_GET  # noqa: N815 - the name that the base class looks for

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@contextmanager
def running(context: ssl.SSLContext, port: int = 0) -> Iterator[ApiServer]:
    """Run a server until the end of the block."""
    api = ApiServer((HOST, port), context)
    thread = threading.Thread(target=api.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield api
    finally:
        api.closing.set()
        api.server.shutdown()
        thread.join()
        api.server.server_close()
