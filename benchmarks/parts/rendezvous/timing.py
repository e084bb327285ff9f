"""The time until a client has its answer: one client after another, and many at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.parts.rendezvous.clients import Clients, Exchange
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.shared.processes import TICKS, usage
from benchmarks.shared.sides import Side
from benchmarks.shared.stage import function_processes

ROUNDS = 5
AT_ONCE = 20
PROXIES = 28
# Concurrent rendezvous of each warm-up round, which start nearly all function instances; they are not counted.
WARM_UP = (1, 5, 10, AT_ONCE, AT_ONCE, AT_ONCE, AT_ONCE, AT_ONCE)


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of measurements in each round."""

    rounds: int = ROUNDS
    sequential: int = 10
    bursts: int = 2


@dataclass(frozen=True, slots=True)
class Timings:
    """The exchanges of one broker's clients in all rounds."""

    sequential: list[Exchange] = field(default_factory=list)
    at_once: list[Exchange] = field(default_factory=list)
    proxy_failures: list[str] = field(default_factory=list)
    burst_processor_seconds: list[float] = field(default_factory=list)
    """The processor time of the whole machine in each burst, from the first offer to the last answer."""
    function_processor_seconds: list[float] = field(default_factory=list)
    """The part of it that the stage's functions took: their processes alone, so that other programs do not count."""


def measure(sides: Sequence[Side], clients: Clients, *, plan: Plan, say: Callable[[str], None]) -> dict[str, Timings]:
    """Measure the brokers alternately, round by round, so that the machine's noise affects all of them."""
    timings = {side.name: Timings() for side in sides}
    for side in sides:
        say(f"warming up {side.name}")
        _warm_up(side, clients)
    for number in range(1, plan.rounds + 1):
        for side in sides if number % 2 else reversed(sides):
            say(f"round {number} of {plan.rounds}: {side.name}")
            _round(side, clients, plan, into=timings[side.name])
    return timings


def _warm_up(side: Side, clients: Clients) -> None:
    with polling(side.broker_url, PROXIES) as pool:
        for at_once in WARM_UP:
            pool.settle()
            clients(side, at_once, at_once)


def _round(side: Side, clients: Clients, plan: Plan, *, into: Timings) -> None:
    with polling(side.broker_url, PROXIES) as pool:
        into.sequential.extend(clients(side, plan.sequential, 1))
        for _ in range(plan.bursts):
            pool.settle()
            before, functions = processor_seconds(), function_ticks()
            into.at_once.extend(clients(side, AT_ONCE, AT_ONCE))
            into.burst_processor_seconds.append(processor_seconds() - before)
            into.function_processor_seconds.append(seconds_since(functions))
    into.proxy_failures.extend(pool.failures)


def function_ticks() -> dict[int, int]:
    """Return the processor ticks of the functions' processes, by process."""
    found = {process: usage(process) for process in function_processes()}
    return {process: used[0] for process, used in found.items() if used}


def seconds_since(before: Mapping[int, int]) -> float:
    """Return the processor time of the functions' processes since then."""
    return sum(ticks - before.get(process, 0) for process, ticks in function_ticks().items()) / TICKS


def processor_seconds() -> float:
    """Return the busy time of this machine's processors since its start (Linux, proc(5))."""
    user, nice, system, _idle, _waiting, *interrupts = Path("/proc/stat").read_text().split()[1:8]
    return sum(map(int, (user, nice, system, *interrupts))) / TICKS
