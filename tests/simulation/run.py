"""Runs of seeds, with their times, their broken guarantees and their stories."""

import gc
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.simulation import guarantees, stand_ins
from tests.simulation.exchange import ExchangeWorld
from tests.simulation.kernel import START, Fault, Kernel
from tests.simulation.live import LiveWorld
from tests.simulation.rendezvous import RendezvousWorld
from tests.simulation.revocation import RevocationWorld
from tests.simulation.splitting import SplittingWorld
from tests.simulation.world import World, fault_plan_of

CAPABILITIES: dict[str, tuple[Any, Any]] = {
    "rendezvous": (RendezvousWorld, guarantees.RENDEZVOUS),
    "exchange": (ExchangeWorld, guarantees.EXCHANGE),
    "live": (LiveWorld, guarantees.LIVE),
    "revocation": (RevocationWorld, guarantees.REVOCATION),
    "splitting": (SplittingWorld, guarantees.SPLITTING),
}


@dataclass
class Result:
    """The outcome of one run."""

    seed: int
    capability: str
    hours: float
    seconds: float
    calls: int
    faults: list[Fault]
    outages: int
    messages: int
    broken: dict[str, list[str]] = field(default_factory=dict)
    story: list[tuple[float, str, str]] | None = None

    @property
    def kinds(self) -> Counter[str]:
        return Counter(fault.kind for fault in self.faults)


def run(capability: str, seed: int, *, chosen: frozenset[str] | None = None, has_story: bool = False) -> Result:
    """Run one seed of a capability, with all its faults or with those of these keys."""
    made, checks = CAPABILITIES[capability]
    began = time.process_time()
    gc.collect()  # what an earlier run has left
    world = made(seed, chosen=chosen, has_story=has_story)
    world.run()
    broken = {check.__name__: problems for check in checks if (problems := list(check(world)))}
    unexpected = unexpected_errors(world)
    if unexpected:
        broken["functions_fail_only_by_faults"] = unexpected
    world.kernel.end()
    return Result(
        seed=seed,
        capability=capability,
        hours=(world.kernel.now - START) / 3600,
        seconds=time.process_time() - began,
        calls=world.kernel.calls,
        faults=world.kernel.faults,
        outages=len(world.calls.outages),
        messages=sum(len(queue.log) for queue in world.sqs.made),
        broken=broken,
        story=world.kernel.story,
    )


def is_long(seed: int) -> bool:
    """Return whether the faults of a seed last for hours."""
    return fault_plan_of(Kernel(seed)).faults_for > 3600


def is_calm(seed: int) -> bool:
    """Return whether a seed has few faults, or none but outages."""
    return fault_plan_of(Kernel(seed)).factor < 1


def unexpected_errors(world: World) -> list[str]:
    """Return the errors of functions that are errors of a program, and not of a service."""
    kinds = (TypeError, KeyError, AttributeError, IndexError, ValueError, AssertionError, NotImplementedError)
    found = [(name, error) for name, one in world.functions.items() for error in one.errors if isinstance(error, kinds)]
    return [f"{name}: {type(error).__name__}: {error}" for name, error in found]


def clock(moment: float) -> str:
    """Return a time of a story."""
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S.%f")[:-3]


stand_ins.install()
gc.freeze()  # the collector looks at what a run makes, and not at all modules
gc.set_threshold(1_000_000, 5, 2)  # a run keeps most of what it makes
