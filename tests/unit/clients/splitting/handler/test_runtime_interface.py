"""Replies of a runtime interface emulator; tests/cli/splitting/test_handler_endpoint.py runs AWS's own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from signalbox.clients.splitting.handler.response import InvocationEnd
from signalbox.clients.splitting.handler.runtime_interface import RuntimeInterface, invocation


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (200, '{"batchItemFailures": []}', InvocationEnd('{"batchItemFailures": []}')),
        (200, "null", InvocationEnd("null")),
        (200, "no JSON", InvocationEnd("no JSON")),
        (200, '{"errorType": "ValueError", "errorMessage": "no"}', InvocationEnd(error="ValueError: no")),
        (
            200,
            "Task timed out after 3.00 seconds",
            InvocationEnd(error="Sandbox.Timedout: Task timed out after 3.00 seconds"),
        ),
        (502, '{"errorType": "Runtime.ExitError", "errorMessage": "x"}', InvocationEnd(error="Runtime.ExitError: x")),
        (502, "", InvocationEnd(error="status 502")),
    ],
)
def test_an_error_is_told_from_a_response(status, text, expected):
    assert invocation(status, text) == expected


@contextmanager
def listener(*, replies: bool) -> Iterator[str]:
    """Accept connections, and close them at once or never reply."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    if replies:
                        connection.close()
                    kept.append(connection)
            except OSError:
                return  # the test is over

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
        for connection in kept:
            connection.close()


def test_a_lost_connection_fails_the_batch():
    with listener(replies=True) as url:
        result = RuntimeInterface(url, timedelta(seconds=3), print).invoke({}, "id")

    assert result.error is not None
    assert result.error.startswith(f"{url} does not reply: ")


def test_an_endpoint_that_does_not_reply_in_time_fails_the_batch():
    with listener(replies=False) as url:
        result = RuntimeInterface(url, timedelta(seconds=0.1), print, grace_seconds=0.1).invoke({}, "id")

    assert result.error == f"{url} does not reply within 0.2 s"


def test_an_endpoint_that_is_away_is_reported_once():
    problems: list[str] = []
    with listener(replies=True) as url:
        endpoint = RuntimeInterface(url, None, problems.append)
        assert endpoint.is_ready()

    assert [endpoint.is_ready(), endpoint.is_ready()] == [False, False]
    (problem,) = problems
    assert problem.startswith(f"{url} cannot be reached, so no message is received until it can")
