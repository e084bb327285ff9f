"""Simulated proxies that poll without long pauses and answer at once, the same for both brokers."""

import math
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from signalbox.clients.rendezvous.simulator import Behaviour, BrokerUnreachableError, ProxySimulator, ServeResult
from signalbox.errors import UnavailableError

# The number of proxies that start together: each needs its own function instance, and too many concurrent cold starts
# would overload the emulator's machine.
STEP = 2
# The shortest pause of upstream's proxy after a response, whatever the broker requests (proxy/lib/snowflake.go, v2.14).
PAUSE_SECONDS = 1.0
# The fraction of proxies that wait at nearly any moment; the others have just received a response without a client.
WAITING_SHARE = 3 / 4
SETTLE_SECONDS = 90
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ProxyPool:
    """Proxies that poll one broker."""

    broker_url: str
    size: int
    rounds: list[ServeResult] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def matches(self) -> int:
        """The number of offers that the proxies received."""
        return sum(1 for served in self.rounds if served.response is not None and served.response.is_match)

    def settle(self, started: int | None = None) -> None:
        """Wait until the broker reports that most of the `started` proxies (default: all) wait for a client."""
        expected = max(1, math.floor((started or self.size) * WAITING_SHARE))
        deadline = time.monotonic() + SETTLE_SECONDS
        while (waiting := proxies_waiting(self.broker_url)) < expected:
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"{waiting} of {expected} proxies wait at {self.broker_url}: {self.failures[-3:]}"
                )
            time.sleep(LOOK_SECONDS)

    def serve(self, proxy: ProxySimulator) -> None:
        """Let one proxy poll until `stopping` is set."""
        while not self.stopping.is_set():
            try:
                self.rounds.append(proxy.serve_once())
            except BrokerUnreachableError as error:
                self.failures.append(str(error))
            self.stopping.wait(PAUSE_SECONDS)


@contextmanager
def polling(broker_url: str, size: int, *, behaviour: Behaviour = Behaviour.NORMAL) -> Iterator[ProxyPool]:
    """Let `size` proxies poll a broker; the end of the block waits for their last polls."""
    pool = ProxyPool(broker_url, size)
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
    """Return the number of waiting proxies that a broker reports."""
    with urllib.request.urlopen(f"{broker_url}debug", timeout=30) as response:
        found = re.match(r"current snowflakes available: (\d+)", response.read().decode())
    return int(found[1]) if found else 0
