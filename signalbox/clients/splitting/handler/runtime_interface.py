"""A function behind the endpoint of a Lambda runtime interface emulator, such as a container's."""

import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import urllib3

from signalbox.clients.splitting.handler.response import InvocationEnd
from signalbox.errors import RejectedError

EXAMPLE = "http://localhost:9000/2015-03-31/functions/function/invocations"
OK = 200
CONNECT_SECONDS = 5.0
GRACE_SECONDS = 5.0  # the emulator enforces the time-out itself, and replies then
TIMED_OUT = "Task timed out after "
PORTS = {"http": 80, "https": 443}


@dataclass(slots=True)
class RuntimeInterface:
    """Posts events to https://github.com/aws/aws-lambda-runtime-interface-emulator; no `timeout` waits for ever."""

    url: str
    timeout: timedelta | None
    on_problem: Callable[[str], None]
    grace_seconds: float = GRACE_SECONDS
    _is_away: bool = False

    def check(self) -> None:
        """Raise `RejectedError` for a URL that is not one of HTTP."""
        parts = urlsplit(self.url)
        if parts.scheme not in PORTS or not parts.hostname:
            raise RejectedError(f"endpoint {self.url!r} is not a URL such as {EXAMPLE}")

    def is_ready(self) -> bool:
        """Return whether the endpoint accepts connections, so that a container that restarts fails no message."""
        parts = urlsplit(self.url)
        try:
            address = (parts.hostname, parts.port or PORTS[parts.scheme])
            socket.create_connection(address, timeout=CONNECT_SECONDS).close()
        except OSError as error:
            if not self._is_away:
                self.on_problem(f"{self.url} cannot be reached, so no message is received until it can: {error}")
            self._is_away = True
            return False
        self._is_away = False
        return True

    def invoke(self, event: Mapping[str, Any], _request_id: str) -> InvocationEnd:
        """Post an event and return the function's response or error."""
        limit = None if self.timeout is None else self.timeout.total_seconds() + self.grace_seconds
        try:
            reply = urllib3.request(
                "POST",
                self.url,
                body=json.dumps(event),
                headers={"Content-Type": "application/json"},
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=limit),
                retries=False,
            )
        except urllib3.exceptions.ReadTimeoutError:
            return InvocationEnd(error=f"{self.url} does not reply within {limit:g} s")
        except urllib3.exceptions.HTTPError as error:
            return InvocationEnd(error=f"{self.url} does not reply: {error}")
        return invocation(reply.status, reply.data.decode(errors="replace"))


def invocation(status: int, text: str) -> InvocationEnd:
    """Return the invocation that an emulator's reply describes.

    A failed function has status 200 too: then the body has `errorType` and `errorMessage`, or says that it timed out.
    """
    value = _json(text)
    if isinstance(value, dict) and "errorType" in value and "errorMessage" in value:
        return InvocationEnd(error=f"{value['errorType']}: {value['errorMessage']}")
    if text.startswith(TIMED_OUT):
        return InvocationEnd(error=f"Sandbox.Timedout: {text}")
    if status != OK:
        return InvocationEnd(error=f"status {status} {text[:200]}".strip())
    return InvocationEnd(text)


def _json(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return value
