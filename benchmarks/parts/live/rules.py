"""In-memory routers in a separate process, which look up subscribers with the code of the deployed function.

Its argument is the number of routers. It prints their URLs as JSON, and ends when its standard input is closed.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from websockets.asyncio.server import ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.effects import Attach, Detach, Distribute, Leave
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.directory import (
    CachedSubscriberDirectory,
    PartitionVersion,
    SubscriberChange,
    SubscriberPartition,
    SubscriberRow,
)
from signalbox.live.wamp import codec
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.local.files import CHECKOUT
from tests.fakes import live_router

USER = "alice"
KEPT_CHANGES = 16
KEPT_FOR = timedelta(hours=2)
STOP_SECONDS = 30


class RouterProcess(NamedTuple):
    """The URLs of a router's realms, and its process, which may have children."""

    urls: Sequence[str]
    pid: int


@dataclass
class _Subscribers:
    """An in-memory `SubscriberTable` of one realm."""

    stored: dict[SubscriberPartition, dict[tuple[ConnectionId, TopicPattern], SubscriberRow]] = field(
        default_factory=dict
    )
    changed: dict[SubscriberPartition, PartitionVersion] = field(default_factory=dict)

    def put(self, subscriber: Subscriber) -> None:
        now = datetime.now(UTC)
        row = SubscriberRow(subscriber, now, now + KEPT_FOR)
        self._change(SubscriberChange(subscriber.connection, subscriber.pattern, row))

    def remove(self, connection: ConnectionId, pattern: TopicPattern) -> None:
        self._change(SubscriberChange(connection, pattern, None))

    def versions(self, partitions: Collection[SubscriberPartition]) -> Mapping[SubscriberPartition, PartitionVersion]:
        return {partition: self.changed[partition] for partition in partitions if partition in self.changed}

    def changes(
        self,
        partition: SubscriberPartition,  # noqa: ARG002 - of the Protocol
        numbers: range,  # noqa: ARG002 - of the Protocol
    ) -> Mapping[int, SubscriberChange]:
        return {}  # so the directory reads all rows if it missed many changes during the subscribing phase

    def rows(self, partition: SubscriberPartition) -> Iterable[SubscriberRow]:
        return list(self.stored.get(partition, {}).values())

    def _change(self, change: SubscriberChange) -> None:
        is_exact = change.pattern.match is MatchPolicy.EXACT
        partition = SubscriberPartition(live_router.REALM, RoutingKey(change.pattern.uri) if is_exact else None)
        rows = self.stored.setdefault(partition, {})
        rows.pop((change.connection, change.pattern), None)
        if change.row is not None:
            rows[change.connection, change.pattern] = change.row
        before = self.changed.get(partition, PartitionVersion())
        self.changed[partition] = PartitionVersion(before.number + 1, (*before.changes, change)[-KEPT_CHANGES:])


@dataclass
class _Router(live_router.Router):
    """A variant of the tests' router that uses the directory, once per event, instead of testing each subscription."""

    subscribers: _Subscribers = field(default_factory=_Subscribers)
    directory: CachedSubscriberDirectory = field(init=False)
    _found: dict[ConnectionId, list[TopicPattern]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directory = CachedSubscriberDirectory(self.subscribers, lambda: datetime.now(UTC))

    def _carry_out(self, peer: live_router.Peer, effect: object) -> None:
        connection, listener = peer.session.connection, peer.session.listener
        if isinstance(effect, Attach) and listener is not None:
            self.subscribers.put(Subscriber(connection, effect.pattern, listener))
        elif isinstance(effect, Detach):
            self.subscribers.remove(connection, effect.pattern)
        elif isinstance(effect, Leave):
            for pattern in effect.subscriptions:
                self.subscribers.remove(connection, pattern)
        super()._carry_out(peer, effect)

    def _distribute(self, effect: Distribute, headers: Mapping[str, str] = MappingProxyType({})) -> LoggedEvent:
        with self._lock:
            self._found = {}
            for one in self.directory.lookup(live_router.REALM, [effect.topic])(effect.topic):
                self._found.setdefault(one.connection, []).append(one.pattern)
            return super()._distribute(effect, headers)

    def _deliver(self, peer: live_router.Peer, logged: LoggedEvent) -> None:
        listener = peer.session.listener
        for pattern in self._found.get(peer.session.connection, ()):
            if listener is not None and logged.audience.admits(listener):
                peer.send(self.texts.text(pattern, logged))


@contextmanager
def running(count: int) -> Iterator[RouterProcess]:
    """Run `count` routers in one process, and yield it with their URLs."""
    command = [sys.executable, "-m", "benchmarks.parts.live.rules", str(count)]
    process = subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield RouterProcess(json.loads(process.stdout.readline()), process.pid)
    finally:
        process.stdin.close()
        process.wait(STOP_SECONDS)
        process.stdout.close()


class _Connection:
    """A connection as the tests' router uses it, over asyncio, where a frame costs less than with a thread each."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.closing: set[asyncio.Task[None]] = set()

    def send(self, text: str) -> None:
        broadcast((self.connection,), text)

    def close(self) -> None:
        self.closing.add(asyncio.get_running_loop().create_task(self.connection.close()))


class _Peer(live_router.Peer):
    """A peer whose connection is closed in the loop that serves it."""

    def close(self) -> None:
        self.connection.close()


async def _serve(count: int) -> None:
    """Serve `count` routers until standard input is closed."""
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(_serving()) for _ in range(count)]
        print(json.dumps(urls), flush=True)
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def _serving() -> AsyncIterator[str]:
    router = _Router({USER: live_router.grants("trial.")})

    async def handle(connection: ServerConnection) -> None:
        agent = connection.request.headers.get("User-Agent", "") if connection.request else ""
        peer = _Peer(cast("Any", _Connection(connection)), live_router.new_session(agent))
        with suppress(ConnectionClosed), router.connected(peer):
            async for text in connection:
                router.receive_text(peer, str(text))

    # Clients that only count bytes answer no pings.
    options: dict[str, Any] = {"compression": None, "close_timeout": 1, "ping_interval": None}
    async with serve(handle, "127.0.0.1", 0, subprotocols=[Subprotocol(codec.SUBPROTOCOL)], **options) as server:
        (socket,) = server.sockets
        yield f"ws://127.0.0.1:{socket.getsockname()[1]}/"


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
