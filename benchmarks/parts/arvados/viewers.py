"""The work of the API server for many viewers of a log: with Workbench's polling, and with one reader."""

import asyncio
import json
import random
import re
import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from benchmarks.parts.arvados import api_server
from benchmarks.parts.arvados.api_server import CONTAINER, MARKER, REQUEST, TOKEN, Work
from benchmarks.parts.live.fan_out import CountingSocket, ours, subscribed
from signalbox.clients.bridge.log_endpoint import LogEndpoint
from signalbox.clients.live.session import ClientSession, join
from signalbox.live.bridge.log_positions import LogPosition
from signalbox.live.bridge.log_reader import ContainerReader, LogPublication
from signalbox.live.wamp.messages import Payload, Publish

VIEWERS, SECONDS = 1_000, 60.0
POLL_SECONDS = 2.0  # of Workbench, after the last answer
BEGIN_SECONDS = 3 * POLL_SECONDS  # all have then read what was there
TOPIC = "trial.log.stdout"
LISTED = re.compile(rb"/([^/<]+)</D:href>.*?<D:getcontentlength>(\d+)<")


@dataclass(frozen=True, slots=True)
class Viewing:
    """The work of the API server in a second, and how many lines viewers missed."""

    way: str
    work: Work
    missing: int | None = None


def measure() -> list[Viewing]:
    """Measure both ways, one after the other, with a new container each."""
    with api_server.running() as (url, work):
        polling = Viewing("each polls, as Workbench", asyncio.run(_polled(url, work)))
    with api_server.running() as (url, work), ExitStack() as stack:
        return [polling, _subscribed(url, work, stack)]


def _a_second(before: Work, after: Work) -> Work:
    return Work(*((two - one) / SECONDS for one, two in zip(before, after, strict=True)))


async def _polled(url: str, work: Callable[[], Work]) -> Work:
    async with asyncio.TaskGroup() as tasks:
        viewers = [tasks.create_task(_poll(url)) for _ in range(VIEWERS)]
        await asyncio.sleep(BEGIN_SECONDS)
        before = work()
        await asyncio.sleep(SECONDS)
        after = work()
        for one in viewers:
            one.cancel()
    return _a_second(before, after)


async def _poll(url: str) -> None:
    """Request a list, then the new part of each file that has grown."""
    sizes = dict[bytes, int]()
    await asyncio.sleep(random.random() * POLL_SECONDS)
    connection = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    while True:
        for name, text in LISTED.findall(await _ask(connection, "PROPFIND", b"", "Depth: 1")):
            known, sizes[name] = sizes.get(name, 0), int(text)
            if sizes[name] > known:
                await _ask(connection, "GET", name, f"Range: bytes={known}-{sizes[name] - 1}")
        await asyncio.sleep(POLL_SECONDS)


async def _ask(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], method: str, name: bytes, header: str
) -> bytes:
    reader, writer = connection
    path = f"/arvados/v1/container_requests/{REQUEST}/log/{CONTAINER}/{name.decode()}"
    writer.write(f"{method} {path} HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n{header}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r")[0]))


@dataclass(slots=True)
class _Realm:
    """A `LogSink` that publishes stdout to all viewers."""

    session: ClientSession
    lines: int = 0

    def publish_log(self, publication: LogPublication) -> None:
        if publication.topic.endswith(".stdout"):
            self.lines += publication.body.count(MARKER)
            payload = Payload((json.loads(publication.body),))
            self.session.send_request(partial(Publish, options={}, topic=TOPIC, payload=payload))


def _subscribed(url: str, work: Callable[[], Work], stack: ExitStack) -> Viewing:
    router = ours(stack)
    viewers = [subscribed(stack, router, TOPIC) for _ in range(VIEWERS)]
    realm = _Realm(join(stack.enter_context(closing(CountingSocket(router.url))), router.login))
    reader = ContainerReader(LogPosition(CONTAINER, REQUEST, ("owner",)), LogEndpoint.of(url, TOKEN), realm)
    arrived = _follow(reader, viewers, BEGIN_SECONDS)
    before = work()
    arrived += _follow(reader, viewers, SECONDS)
    after = work()
    reader.due_at += SECONDS
    arrived += _follow(reader, viewers, BEGIN_SECONDS)
    return Viewing("one reader, all are subscribed", _a_second(before, after), realm.lines * VIEWERS - arrived)


def _follow(reader: ContainerReader, viewers: Sequence[CountingSocket], seconds: float) -> int:
    """Poll when it is due; return how many lines have arrived at viewers."""
    arrived, end = 0, time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for one in viewers:
            selector.register(one.connection, selectors.EVENT_READ, one)
        while (now := time.monotonic()) < end:
            if reader.due_at <= now:
                reader.poll(now)
            arrived += sum(key.data.count(MARKER.encode()) for key, _ in selector.select(0.05))
    return arrived
