"""The end of a function instance: Lambda sends SIGTERM to a function that has registered an extension."""

import logging
import os
import signal
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection
from threading import Thread

# https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html
EXTENSIONS = "/2020-01-01/extension"
NAME = "collected-events"
RUNTIME_API = "AWS_LAMBDA_RUNTIME_API"

logger = logging.getLogger(__name__)


def before_end(flush: Callable[[], None]) -> None:
    """Call `flush` when Lambda ends the instance.

    Lambda registers extensions before the first invocation only, so a module calls this when it is imported. The
    runtimes for Python 3.12 and later handle signals while they wait for an invocation.
    """
    address = os.environ.get(RUNTIME_API)
    if address is None or "AWS_ENDPOINT_URL" in os.environ:
        return  # not in Lambda, or on a local stage
    signal.signal(signal.SIGTERM, lambda *_: flush())
    connection = HTTPConnection(address)
    connection.request("POST", f"{EXTENSIONS}/register", "{}", {"Lambda-Extension-Name": NAME})
    response = connection.getresponse()
    response.read()
    if response.status != HTTPStatus.OK:
        logger.error("Lambda refused the extension with status %d", response.status)
        return
    headers = {"Lambda-Extension-Identifier": response.headers["Lambda-Extension-Identifier"]}
    # Lambda waits for this request before the first invocation, and answers it never, since no event is registered.
    Thread(target=_wait, args=(connection, headers), daemon=True).start()


def _wait(connection: HTTPConnection, headers: dict[str, str]) -> None:
    connection.request("GET", f"{EXTENSIONS}/event/next", headers=headers)
    connection.getresponse()
