"""Many of our clients at once, each in its own thread, and the events that they received."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import Cursor, ReceivedEvent
from signalbox.clients.live.session import ConnectionLost
from signalbox.errors import SignalboxError
from signalbox.live.wamp.patterns import TopicPattern
from tests.integration.shared.tcp_proxy import TcpProxy

LOOK_SECONDS = 0.5
SECONDS_BETWEEN_STARTS = 0.2
Seen = dict[str, list[object]]  # received events, by topic


@dataclass(slots=True)
class Follower:
    """A client that follows some patterns until it is stopped."""

    client: LiveClient
    patterns: Sequence[TopicPattern]
    seen: Seen = field(default_factory=dict)
    count: int = 0
    skipped: int = 0
    error: SignalboxError | None = None
    cursors: list[Cursor] = field(default_factory=list)
    cursor_type: type[Cursor] = Cursor

    @property
    def is_ready(self) -> bool:
        """Return whether the client is subscribed to every pattern and caught up."""
        return len(self.cursors) == len(self.patterns) and all(cursor.is_caught_up for cursor in self.cursors)

    def follow(self, over: threading.Event) -> None:
        """Follow every pattern from now on, until `over` or until the client gives up."""
        self.subscribe()
        try:
            self.listen(over)
        except SignalboxError as error:
            self.error = error

    def subscribe(self) -> None:
        """Let the client follow every pattern from now on."""
        self.cursors = [self.cursor_type(pattern) for pattern in self.patterns]
        for cursor in self.cursors:
            self.client.follow(cursor)

    def listen(self, over: threading.Event) -> None:
        """Receive events until `over`. Raises `SignalboxError` when the client gives up."""
        with self.client:
            while not over.is_set():
                with suppress(ConnectionLost):  # when many clients start at once, some do not join in time
                    event = self.client.receive(LOOK_SECONDS)
                    if event is not None:
                        self.take(event)

    def take(self, event: ReceivedEvent) -> None:
        """Note a received event."""
        self.seen.setdefault(event.topic, []).append(event.payload.arguments[0])
        self.count += 1
        self.skipped += event.skipped


@contextmanager
def following(followers: Sequence[Follower]) -> Iterator[None]:
    """Run all followers within the context."""
    over = threading.Event()
    threads = [threading.Thread(target=follower.follow, args=(over,), daemon=True) for follower in followers]
    for thread in threads:
        thread.start()
        over.wait(SECONDS_BETWEEN_STARTS)
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextmanager
def cutting(line: TcpProxy, *, between: tuple[float, float], chance: Random) -> Iterator[Callable[[], int]]:
    """Cut random connections one after another; the function returns the number of cuts."""
    over, cuts = threading.Event(), Counter[str]()

    def cut() -> None:
        while not over.wait(chance.uniform(*between)):
            cuts["cut"] += line.cut_one(chance)

    thread = threading.Thread(target=cut, daemon=True)
    thread.start()
    try:
        yield lambda: cuts["cut"]
    finally:
        over.set()
        thread.join()


def differences(follower: Follower, published: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """Yield the topics whose received events differ from the published ones."""
    for topic, values in published.items():
        if any(pattern.matches(topic) for pattern in follower.patterns):  # type: ignore[arg-type]
            seen = follower.seen.get(topic, [])
            if seen != list(values):
                yield f"{topic}: {seen} and not {list(values)}"
