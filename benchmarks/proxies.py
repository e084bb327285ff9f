"""Proxies that poll nearly all the time and answer at once: the same for both brokers."""

import math
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from signalbox.clients.rendezvous.simulator import Behaviour, BrokerUnreachableError, ProxySimulator, Round
from signalbox.errors import UnavailableError

# So many new ones at a time: each needs a function instance of its own, and all cold starts at once would choke the
# emulator's machine.
STEP = 2
# The least that upstream's proxy waits after a response, whatever the broker says (proxy/lib/snowflake.go, v2.14).
PAUSE_SECONDS = 1.0
# Of all proxies, so many wait at nearly any moment; the rest have just been told that there is no client.
WAITING_SHARE = 3 / 4
SETTLE_SECONDS = 90
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Pool:
    """Proxies that poll one broker."""

    broker_url: str
    size: int
    rounds: list[Round] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def matches(self) -> int:
        """Return how many offers the proxies were given."""
        return sum(1 for served in self.rounds if served.response is not None and served.response.is_match)

    def settle(self, started: int | None = None) -> None:
        """Wait until the broker says that most of the proxies wait for a client, of all or of those `started`."""
        expected = max(1, math.floor((started or self.size) * WAITING_SHARE))
        deadline = time.monotonic() + SETTLE_SECONDS
        while (waiting := proxies_waiting(self.broker_url)) < expected:
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"{waiting} of {expected} proxies wait at {self.broker_url}: {self.failures[-3:]}"
                )
            time.sleep(LOOK_SECONDS)

    def serve(self, proxy: ProxySimulator) -> None:
        """Let one proxy poll until the end."""
        while not self.stopping.is_set():
            try:
                self.rounds.append(proxy.serve_once())
            except BrokerUnreachableError as error:
                self.failures.append(str(error))
            self.stopping.wait(PAUSE_SECONDS)


@contextmanager
def polling(broker_url: str, size: int, *, behaviour: Behaviour = Behaviour.NORMAL) -> Iterator[Pool]:
    """Let proxies poll a broker; the end of the block waits for their last polls, so that none is left behind."""
    pool = Pool(broker_url, size)
    proxy = ProxySimulator(broker_url, behaviour=behaviour)
    with ThreadPoolExecutor(size) as threads:
        try:
            for number in range(1, size + 1):
                threads.submit(pool.serve, proxy)
                if number % STEP == 0 or number == size:
                    pool.settle(number)
            yield pool
        finally:
            pool.stopping.set()


def proxies_waiting(broker_url: str) -> int:
    """Return how many proxies a broker says are waiting."""
    with urllib.request.urlopen(f"{broker_url}debug", timeout=30) as response:
        found = re.match(r"current snowflakes available: (\d+)", response.read().decode())
    return int(found[1]) if found else 0
