"""The benchmark of a stage that just woke: many clients at once, before any function but `poll` has an instance."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.parts.rendezvous.clients import Clients, Exchange
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.parts.rendezvous.timing import AT_ONCE, processor_seconds
from benchmarks.shared.sides import Side

PROXIES = 40


@dataclass(frozen=True, slots=True)
class Wake:
    """The exchanges of the first clients of a stage, and the machine's processor seconds until the last answer."""

    exchanges: list[Exchange]
    processor_seconds: float


def measure(side: Side, clients: Clients, say: Callable[[str], None]) -> Wake:
    """Let the first clients of a side come at once, when most of the proxies wait."""
    say(f"{PROXIES} proxies begin to poll")
    with polling(side.broker_url, PROXIES) as pool:
        pool.settle()
        say(f"{AT_ONCE} clients")
        before = processor_seconds()
        exchanges = clients(side, AT_ONCE, AT_ONCE)
        return Wake(exchanges, processor_seconds() - before)
