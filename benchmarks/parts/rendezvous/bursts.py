"""The bursts of rendezvous: the first clients of a stage, those at a larger budget, and clients under kills."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from benchmarks.parts.rendezvous.clients import Clients, Exchange
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.parts.rendezvous.timing import AT_ONCE, PROXIES, Plan, Timings, measure
from benchmarks.shared.sides import SIGNALBOX, Side
from benchmarks.shared.stage import function_processes, running_stage

# Twenty clients at once need twenty polls: this budget lets each of the proxies poll once a second.
LARGE_BUDGET_USD = 100
# Without the HTTP API, which a local stage opens too: with it, the same budget pays for fewer polls.
URLS = "rendezvous_doors=url"
KILLED_CLIENTS, KILLED_AT_ONCE, KILLED_PROXIES = 150, 10, 30
KILL_EVERY_SECONDS = 0.5


@dataclass(slots=True)
class Killed:
    """The exchanges of clients while the processes of functions are killed, and the number of kills."""

    exchanges: list[Exchange] = field(default_factory=list)
    kills: int = 0


def first(side: Side, clients: Clients) -> list[Exchange]:
    """Execute the first rendezvous of a stage, whose functions have no instances but those of polls, all at once."""
    with polling(side.broker_url, PROXIES) as pool:
        pool.settle()
        return clients(side, AT_ONCE, AT_ONCE)


def at_large_budget(clients: Clients, *, port: int, rounds: int, say: Callable[[str], None]) -> Mapping[str, Timings]:
    """Measure a stage of the larger budget."""
    with running_stage(port=port, context=(f"poll_budget_usd={LARGE_BUDGET_USD}", URLS)) as stage:
        return measure([stage.signalbox()], clients, plan=Plan(rounds=rounds, sequential=0), say=say)


def under_kills(side: Side, clients: Clients) -> Killed:
    """Execute rendezvous while a process of a function is killed each half second."""
    found = Killed()
    with polling(side.broker_url, KILLED_PROXIES) as pool:
        pool.settle()
        with _killing(found):
            found.exchanges = clients(side, KILLED_CLIENTS, KILLED_AT_ONCE)
    return found


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
