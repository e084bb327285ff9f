"""The bursts of rendezvous: first clients, clients at a larger budget and under kills, and a flood of polls."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from benchmarks.parts.rendezvous.clients import Clients, Exchange
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.parts.rendezvous.timing import AT_ONCE, PROXIES, Plan, Timings, function_ticks, measure, seconds_since
from benchmarks.shared.sides import SIGNALBOX, Side
from benchmarks.shared.stage import function_processes, running_stage
from signalbox.clients.rendezvous.simulator import ProxySimulator, ServeResult

# Twenty clients at once need twenty polls: this budget lets each of the proxies poll once a second.
LARGE_BUDGET_USD = 100
# Without the HTTP API, which a local stage opens too: with it, the same budget pays for fewer polls.
URLS = "rendezvous_doors=url"
KILLED_CLIENTS, KILLED_AT_ONCE, KILLED_PROXIES = 150, 10, 30
KILL_EVERY_SECONDS = 0.5
# A budget that serves hardly any poll of a flood; its share is known after some time.
FLOODED_BUDGET_USD, FLOODING = 1, 8
KNOWN_AFTER_SECONDS, FLOOD_SECONDS = 60, 30


@dataclass(slots=True)
class Killed:
    """The exchanges of clients while the processes of functions are killed, and the number of kills."""

    exchanges: list[Exchange] = field(default_factory=list)
    kills: int = 0


def first(side: Side, clients: Clients) -> list[Exchange]:
    """Execute the first rendezvous of a stage, whose functions have no instances but those of polls, all at once."""
    with polling(side.broker_url, PROXIES):
        return clients(side, AT_ONCE, AT_ONCE)


def at_large_budget(clients: Clients, *, port: int, rounds: int, say: Callable[[str], None]) -> Mapping[str, Timings]:
    """Measure a stage of the larger budget."""
    with running_stage(port=port, context=(f"poll_budget_usd={LARGE_BUDGET_USD}", URLS)) as stage:
        return measure([stage.signalbox()], clients, plan=Plan(rounds=rounds, sequential=0), say=say)


def under_kills(side: Side, clients: Clients) -> Killed:
    """Execute rendezvous while a process of a function is killed each half second."""
    found = Killed()
    with polling(side.broker_url, KILLED_PROXIES), _killing(found):
        found.exchanges = clients(side, KILLED_CLIENTS, KILLED_AT_ONCE)
    return found


def flood(*, port: int) -> float:
    """Return the processor seconds of a poll beyond the budget, which functions answer from memory."""
    with running_stage(port=port, context=(f"poll_budget_usd={FLOODED_BUDGET_USD}", URLS)) as stage:
        proxy = ProxySimulator(stage.signalbox().broker_url)
        _poll_for(KNOWN_AFTER_SECONDS, proxy)
        before = function_ticks()
        polls = _poll_for(FLOOD_SECONDS, proxy)
        return seconds_since(before) / polls


def _poll_for(seconds: float, proxy: ProxySimulator) -> int:
    """Let eight proxies poll without a pause, and return the number of their polls."""
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(FLOODING) as threads:
        served = [threads.submit(lambda: list(iter(lambda: _poll_until(end, proxy), None))) for _ in range(FLOODING)]
        return sum(len(one.result()) for one in served)


def _poll_until(end: float, proxy: ProxySimulator) -> ServeResult | None:
    return proxy.serve_once() if time.monotonic() < end else None


@contextmanager
def _killing(found: Killed) -> Iterator[None]:
    stopping = threading.Event()
    thread = threading.Thread(target=_kill_until, args=(stopping, found))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _kill_until(stopping: threading.Event, found: Killed) -> None:
    while not stopping.wait(KILL_EVERY_SECONDS):
        processes = function_processes()
        if processes:
            with suppress(ProcessLookupError):
                os.kill(random.choice(processes), signal.SIGKILL)
                found.kills += 1


def of_signalbox(timings: Mapping[str, Timings]) -> list[Exchange]:
    """Return the exchanges of bursts of Signalbox."""
    return timings[SIGNALBOX].at_once if SIGNALBOX in timings else []
