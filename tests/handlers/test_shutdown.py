"""The end of a function instance, with a server in place of Lambda's runtime interface."""

import os
import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from lambdas.shared.shutdown import RUNTIME_API, before_end


class Api(ThreadingHTTPServer):
    """Records requests; it answers the one for the next event when the test ends."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.status, self.requests, self.waiting, self.ended = status, [], Event(), Event()


class _Requests(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.requests.append((self.path, self.headers["Lambda-Extension-Name"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(self.server.status)

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers["Lambda-Extension-Identifier"]))
        self.server.waiting.set()
        self.server.ended.wait()
        self._answer(200)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Lambda-Extension-Identifier", "id-1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api(request, monkeypatch) -> Iterator[Api]:
    before, server = signal.getsignal(signal.SIGTERM), Api(getattr(request, "param", 200))
    monkeypatch.setenv(RUNTIME_API, f"127.0.0.1:{server.server_port}")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.ended.set()
    server.shutdown()
    thread.join()
    server.server_close()
    signal.signal(signal.SIGTERM, before)


def test_an_instance_flushes_when_lambda_ends_it(api: Api) -> None:
    flushed = Event()

    before_end(flushed.set)
    assert api.waiting.wait(60)
    os.kill(os.getpid(), signal.SIGTERM)

    assert flushed.wait(60)
    register, following = api.requests
    assert register == ("/2020-01-01/extension/register", "collected-events")
    assert following == ("/2020-01-01/extension/event/next", "id-1")


@pytest.mark.parametrize("api", [403], indirect=True)
def test_a_refused_extension_does_not_stop_the_function(api: Api, caplog) -> None:
    before_end(lambda: None)

    assert "status 403" in caplog.text


def test_outside_of_lambda_nothing_is_registered(monkeypatch) -> None:
    monkeypatch.delenv(RUNTIME_API, raising=False)
    before = signal.getsignal(signal.SIGTERM)

    before_end(lambda: None)

    assert signal.getsignal(signal.SIGTERM) is before
