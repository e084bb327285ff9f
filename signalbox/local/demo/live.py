"""The demo of live: a client that opens the page of a running container's log reads all of it, old and new lines."""

import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.request import urlopen

from signalbox.aws.shared.settings import SystemClock
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import Cursor, ReceivedEvent
from signalbox.clients.live.session import Login
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.local.live_users import administrator
from signalbox.local.progress import step

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.clients.exchange.client import ExchangeClient

Row = tuple[str, str]
READER = "live-subscriber"
PAUSE_SECONDS = 0.1
BEFORE, AFTER = 20, 20  # lines before the page is opened, and new lines after that
TIMEOUT_SECONDS = 60.0


def live_rows(deployment: "Deployment") -> Iterator[Row]:
    """Write a log, open the page and follow the log as the page does; yield the results.

    Raises `UnavailableError` if a line is missing, repeated or out of order.
    """
    container = f"trial.container.zzzzz-dz642-{secrets.token_hex(8)[:15]}"
    topic, page_url = f"{container}.log.stdout", f"{deployment.endpoint_url}/live/"
    with ExitStack() as stack:
        with step(f"live: a log is written, {BEFORE} lines"):
            log = stack.enter_context(_Log.running(deployment, topic))
            log.wait_for(BEFORE)
        with step("live: the page is opened"):
            title = _title(page_url)
        yield "page", f"{title!r} at {page_url}#/log/{quote(f'{container}.log.*', safe='')}"
        with step(f"live: the log is followed, {AFTER} lines more"):
            seen, new = _followed(deployment, f"{container}.log.")
    numbers = [event.sequence for event in seen]
    if numbers != list(range(1, len(seen) + 1)):
        raise UnavailableError(f"the log {topic!r} was received with the numbers {numbers}")
    yield "log", f"{len(seen) - len(new)} old lines, then {len(new)} new ones, each once and in order"
    yield "lag", f"{median(new) * 1000:.0f} ms from publishing to receiving (median)"
    yield "sign in", f"as {READER}, with its ticket in local.json"


def _followed(deployment: "Deployment", beginning: str) -> tuple[list[ReceivedEvent], list[float]]:
    """Return all events of a log, old and new ones, and the delays of the new ones in seconds."""
    login = Login(deployment.realm, READER, deployment.tickets[READER])
    cursor = Cursor(TopicPattern(MatchPolicy.PREFIX, beginning), LastEvents(1000))
    seen: list[ReceivedEvent] = []
    lags: list[float] = []
    with LiveClient(connector(deployment.websocket_url), login) as client:
        client.follow(cursor)
        opened_at = SystemClock().now()
        while len(lags) < AFTER:
            event = client.receive(TIMEOUT_SECONDS)
            if event is None:
                raise UnavailableError(f"no event of the log was received for {TIMEOUT_SECONDS:.0f} s")
            seen.append(event)
            if event.at is not None and event.at > opened_at:
                lags.append((SystemClock().now() - event.at).total_seconds())
    return seen, lags


class _Log:
    """A log that a thread writes until the block ends."""

    def __init__(self, client: "ExchangeClient", realm: str, topic: str) -> None:
        self._client, self._realm, self._topic = client, realm, topic
        self._over, self._written = threading.Event(), threading.Semaphore(0)

    @classmethod
    @contextmanager
    def running(cls, deployment: "Deployment", topic: str) -> Iterator["_Log"]:
        client = administrator(deployment.session(), deployment.outputs)
        log = cls(client, deployment.realm, topic)
        thread = threading.Thread(target=log._write)
        thread.start()
        try:
            yield log
        finally:
            log._over.set()
            thread.join()

    def wait_for(self, lines: int) -> None:
        for _ in range(lines):
            if not self._written.acquire(timeout=TIMEOUT_SECONDS):
                raise UnavailableError(f"no line is written to {self._topic!r}")

    def _write(self) -> None:
        number = 0
        while not self._over.wait(PAUSE_SECONDS):
            number += 1
            self._client.publish(self._realm, self._topic, f"line {number}: aligned {number * 512} reads")
            self._written.release()


def _title(url: str) -> str:
    with urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
        page: Any = answer.read().decode()
    found = re.search(r"<title>(.*?)</title>", page)
    if found is None:
        raise UnavailableError(f"{url} has no title")
    return found.group(1)
