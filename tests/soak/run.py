"""One round of the soak on a running stage: all loads at once, kills, and the accounts."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from signalbox.clients.deployment import Deployment, local_deployment
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.stage import TrialRealm
from tests.integration.shared.fault_injection import FaultInjector
from tests.soak.accounts import Account, Outage
from tests.soak.dead_letters import dead_letters
from tests.soak.exchange import ExchangeLoad
from tests.soak.live import THOUSANDS, LiveLoad, LiveSizes
from tests.soak.loads import PASSING, Load, Pace
from tests.soak.outages import Outages
from tests.soak.rendezvous import RendezvousLoad
from tests.soak.splitting import READS_SECONDS, SplittingLoad

# The functions of a stage that are part of it on AWS, too; `receive` replaces a part of API Gateway.
HANDLERS = "lambdas."
SPARED = ("live.receive", "live.page", "rendezvous.page", "rendezvous.sweep")
BETWEEN_KILLS = (0.4, 0.6)
# Instances that are younger, or have used less of a processor, are not killed: a function that never starts processes
# nothing. A start takes about half a second of a processor.
SPARED_SECONDS, SPARED_PROCESSOR_SECONDS = 3.0, 0.8
REPORT_SECONDS = 15.0
# How long nothing may arrive before what is missing counts as lost.
PATIENCE_SECONDS = 300.0
# The loads keep to these proportions.
GOALS = {"exchange": 100_000, "splitting": 100_000, "live": 20_000}
LONGER = 4  # times as long as asked, a round waits at most for its counts and kills


@dataclass(frozen=True, slots=True)
class Round:
    """The results of one round."""

    seed: int
    seconds: float
    ended: float
    """When the kills ended, in seconds since 1970."""
    settle_seconds: float
    kills: int
    counts: Mapping[str, int]
    accounts: tuple[Account, ...]
    dead_letters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Soak:
    """A stage, and how it is soaked."""

    local: dict[str, Any]
    folder: StageFolder
    seed: int
    say: Callable[[str], None]
    between_kills: tuple[float, float] = BETWEEN_KILLS
    reads_seconds: float = READS_SECONDS
    patience_seconds: float = PATIENCE_SECONDS
    least_kills: int = 0
    """The number of kills after which a round may end."""
    thousands: bool = False
    """Whether live is loaded alone, with thousands of subscriptions."""
    outages: Outages | None = None
    """The services that are away one after the other; the round lasts until all have been."""

    def round(self, *, seconds: float, counts: Mapping[str, int]) -> Round:
        """Run all loads for some time, until they have sent `counts` and kills are enough; return the accounts."""
        deployment = local_deployment(self.local, folder=self.folder.path)
        loads = list(self._loads(deployment))
        injector = FaultInjector(
            self.folder, functions(deployment), SPARED_SECONDS, SPARED_PROCESSOR_SECONDS, self._chance()
        )
        began = time.monotonic()
        kills, ended = self._run(loads, injector, seconds=seconds, counts=counts)
        sent = time.monotonic()
        self.say(f"{kills} kills in {sent - began:.0f} s; waiting for what is on the way")
        self._settle(loads)
        for load in loads:
            load.close()
        letters = dead_letters(deployment)
        return Round(
            seed=self.seed,
            seconds=round(sent - began, 1),
            ended=ended,
            settle_seconds=round(time.monotonic() - sent, 1),
            kills=kills,
            counts={what: count for load in loads for what, count in load.counts().items()},
            accounts=tuple(one for load in loads for one in load.accounts(letters, self._past_outages())),
            dead_letters=dict(Counter(f"{one.queue}: {one.reason}" for one in letters)),
        )

    def _past_outages(self) -> Sequence[Outage]:
        return self.outages.past if self.outages else ()

    def _loads(self, deployment: Deployment) -> Iterator[Load]:
        place = TrialRealm.of(self.local)
        place.warm_up()
        sizes = THOUSANDS if self.thousands else LiveSizes()
        if not self.thousands:
            yield ExchangeLoad(deployment)
            yield SplittingLoad(deployment, self.reads_seconds)
            yield RendezvousLoad(deployment)
        yield LiveLoad(deployment, place, self._chance(), sizes)

    def _chance(self) -> Random:
        """Return the same chance for the same seed: functions, connections and intervals are drawn from it."""
        return Random(self.seed)  # noqa: S311 - no secret

    def _run(
        self, loads: Sequence[Load], injector: FaultInjector, *, seconds: float, counts: Mapping[str, int]
    ) -> tuple[int, float]:
        """Run the loads, and kill functions until the loads are to end; return the number of kills and their end."""
        begin, over = time.monotonic(), threading.Event()
        end = begin + max(seconds, self.outages.seconds if self.outages else 0)

        def is_over(kills: Sequence[float]) -> bool:
            if self.outages:
                self.outages.update(time.monotonic() - begin)
            if time.monotonic() >= end + LONGER * seconds:
                return True
            is_enough = time.monotonic() >= end and len(kills) >= self.least_kills
            return is_enough and all(load.sent_count() >= counts.get(load.name, 0) for load in loads)

        pace = Pace(GOALS, loads)
        with ThreadPoolExecutor(len(loads)) as threads:
            running = [threads.submit(load.run, over.is_set, partial(pace.is_ahead, load)) for load in loads]
            reported = time.monotonic()
            with injector.continuous_kills(between=self.between_kills) as kills:
                while not is_over(kills) and not any(one.done() for one in running):  # a load that fails ends the round
                    time.sleep(1)
                    if time.monotonic() - reported >= REPORT_SECONDS:
                        reported = time.monotonic()
                        self.say(_progress(loads))
            ended = time.time()
            over.set()
            if self.outages:
                self.outages.end()
            for one in running:
                one.result()
        return len(kills), ended

    def _settle(self, loads: Sequence[Load]) -> None:
        """Wait until everything has arrived, or nothing more arrives for some time."""
        newest, seen = time.monotonic(), tuple(load.progress() for load in loads)
        left = list(loads)
        while left and time.monotonic() - newest < self.patience_seconds:
            time.sleep(2)
            with suppress(*PASSING):
                left = [load for load in left if not load.is_complete()]
            now = tuple(load.progress() for load in loads)
            if now != seen:
                newest, seen = time.monotonic(), now
        self.say(_progress(loads))


def functions(deployment: Deployment) -> list[str]:
    """Return the names of the functions to kill."""
    pages = deployment.session().client("lambda").get_paginator("list_functions").paginate()
    found = {one["FunctionName"]: one["Handler"] for page in pages for one in page["Functions"]}
    return sorted(
        name
        for name, handler in found.items()
        if handler.startswith(HANDLERS) and handler.removeprefix(HANDLERS).removesuffix(".handler") not in SPARED
    )


def _progress(loads: Sequence[Load]) -> str:
    return ", ".join(f"{load.name} {arrived} of {sent}" for load in loads for sent, arrived in (load.progress(),))
