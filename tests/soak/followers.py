"""Many of our clients at once, each in its own thread; their connections are cut now and then."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.session import ConnectionLost
from signalbox.live.wamp.patterns import TopicPattern
from tests.integration.shared.tcp_proxy import TcpProxy
from tests.soak.accounts import Arrival, Stamp
from tests.soak.cursors import StrictCursor
from tests.soak.loads import PASSING

LOOK_SECONDS = 0.5
SECONDS_BETWEEN_STARTS = 0.2


@dataclass(slots=True)
class Follower:
    """A client that notes when each event arrives, and is started again when it gives up."""

    client: LiveClient
    patterns: Sequence[TopicPattern]
    name: str
    area: int
    arrivals: list[Arrival] = field(default_factory=list)
    cursors: list[StrictCursor] = field(default_factory=list)

    @property
    def is_ready(self) -> bool:
        """Return whether the client is subscribed to every pattern and caught up."""
        return len(self.cursors) == len(self.patterns) and all(cursor.is_caught_up for cursor in self.cursors)

    def follow(self, over: threading.Event) -> None:
        """Follow every pattern from now on, until `over`; a client that gives up continues with the same cursors."""
        self.cursors = [StrictCursor(pattern) for pattern in self.patterns]
        for cursor in self.cursors:
            self.client.follow(cursor)
        while not over.is_set():
            try:
                self._listen(over)
            except PASSING:
                time.sleep(1)

    def _listen(self, over: threading.Event) -> None:
        with self.client:
            while not over.is_set():
                with suppress(ConnectionLost):  # when many clients start at once, some do not join in time
                    if event := self.client.receive(LOOK_SECONDS):
                        number = int(str(event.payload.arguments[0]))
                        self.arrivals.append(Arrival(Stamp(event.topic, number), self.name, time.time()))


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
