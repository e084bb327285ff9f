"""Simulated proxies that poll when their broker requests it and answer at once, the same for both brokers."""

import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from signalbox.clients.rendezvous.simulator import BrokerUnreachableError, ProxySimulator, ServeResult
from signalbox.errors import UnavailableError

# The shortest pause of upstream's proxy after a response (proxy/lib/snowflake.go, v2.14).
PAUSE_SECONDS = 1.0
SETTLE_SECONDS = 90
# After this time proxies that started or answered together do not poll together, as those of volunteers.
SPREAD_SECONDS = 3
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
        return sum(1 for served in self.rounds if served.response.is_match)

    def settle(self) -> None:
        """Wait until the broker knows a proxy, and the proxies poll independently."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while not proxies_available(self.broker_url):
            if time.monotonic() > deadline:
                raise UnavailableError(f"{self.broker_url} knows no proxy: {self.failures[-3:]}")
            time.sleep(LOOK_SECONDS)
        time.sleep(SPREAD_SECONDS)

    def serve(self, proxy: ProxySimulator) -> None:
        """Let one proxy poll until `stopping` is set."""
        while not self.stopping.is_set():
            pause = PAUSE_SECONDS
            try:
                served = proxy.serve_once()
            except BrokerUnreachableError as error:
                self.failures.append(str(error))
            else:
                self.rounds.append(served)
                pause = max(pause, served.response.next_poll_milliseconds / 1000)
            self.stopping.wait(pause)


@contextmanager
def polling(broker_url: str, size: int, *, is_silent: bool = False) -> Iterator[ProxyPool]:
    """Let `size` proxies poll a broker; the end of the block waits for their last polls."""
    pool = ProxyPool(broker_url, size)
    proxy = ProxySimulator(broker_url, is_silent=is_silent)
    with ThreadPoolExecutor(size) as threads:
        try:
            for _ in range(size):
                threads.submit(pool.serve, proxy)
            pool.settle()
            yield pool
        finally:
            pool.stopping.set()


def proxies_available(broker_url: str) -> int:
    """Return the number of proxies that a broker reports; 0 while it does not respond, as when its functions start."""
    try:
        with urllib.request.urlopen(f"{broker_url}debug", timeout=30) as response:
            found = re.match(r"current snowflakes available: (\d+)", response.read().decode())
    except OSError:
        return 0
    return int(found[1]) if found else 0
