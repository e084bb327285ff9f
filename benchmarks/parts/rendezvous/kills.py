"""The benchmark of kills: clients and proxies while a function's process is killed every half second."""

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from benchmarks.parts.rendezvous.clients import Clients, Exchange
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.shared.stage import Stage, function_processes
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT

PROXIES = 30
AT_ONCE = 10
# Without kills a round takes two seconds, so most of a round's clients have their answers before the next round.
ROUND_SECONDS = 6.0
SOON_SECONDS = 20.0
QUIET_SECONDS = 60.0
WARM_UPS = 2
REQUEST_ID = re.compile(r"RequestID: [0-9a-f-]*, ")


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of rounds of ten clients, and the time between two kills."""

    rounds: int = 15
    every_seconds: float = 0.5
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Kills:
    """The results of all clients, and what was killed."""

    exchanges: list[Exchange]
    kills: int
    seconds: float
    dead_letters: int
    """The offers that became dead letters."""
    left: int
    """The offers that are still in the broker queue a minute after the last kill."""
    load: float
    """The machine's load average of one minute at the last kill."""

    @property
    def answered_soon(self) -> int:
        """The number of clients with the right answer within 20 s."""
        return sum(1 for one in self.exchanges if one.is_right and one.client_ms <= SOON_SECONDS * 1000)

    @property
    def untold(self) -> int:
        """The number of clients that got neither an answer nor one of the broker's errors."""
        return sum(1 for one in self.exchanges if not one.is_right and not _is_reported(one))

    @property
    def errors(self) -> dict[str, int]:
        """The errors of the clients, with their numbers."""
        texts = (REQUEST_ID.sub("", one.error) for one in self.exchanges if not one.is_right)
        return dict(Counter(text or "another answer" for text in texts))


def _is_reported(exchange: Exchange) -> bool:
    return any(text in exchange.error for text in (NO_PROXIES, TIMED_OUT))


def measure(stage: Stage, clients: Clients, plan: Plan, say: Callable[[str], None]) -> Kills:
    """Run the clients while functions are killed; a round begins when the one before has ended."""
    side, sqs = stage.signalbox(), stage.deployment.session().client("sqs")
    outputs = stage.deployment.outputs
    with polling(side.broker_url, PROXIES) as pool:
        for _ in range(WARM_UPS):
            clients(side, AT_ONCE, AT_ONCE)
        pool.settle()
        started, exchanges = time.monotonic(), []
        with _killing(plan) as killed:
            for number in range(plan.rounds):
                say(f"round {number + 1} of {plan.rounds}, {len(killed)} kills")
                _sleep_until(started + number * ROUND_SECONDS)
                exchanges += clients(side, AT_ONCE, AT_ONCE)
            _sleep_until(started + plan.rounds * ROUND_SECONDS)
        seconds, load = time.monotonic() - started, os.getloadavg()[0]
        say("waiting for the last offers")
        left = _messages_when_quiet(sqs, outputs["BrokerQueueUrl"])
    dead_letters = _messages(sqs, outputs["DeadLetterQueueUrl"])
    return Kills(exchanges, len(killed), seconds, dead_letters, left, round(load, 1))


@contextmanager
def _killing(plan: Plan) -> Iterator[list[int]]:
    """Kill a function's process, chosen at random, until the block ends; yield the list of the killed processes."""
    killer = _Killer(random.Random(plan.seed))
    thread = threading.Thread(target=killer.run, args=(plan.every_seconds,), daemon=True)
    thread.start()
    try:
        yield killer.killed
    finally:
        killer.stopping.set()
        thread.join()


@dataclass(frozen=True, slots=True)
class _Killer:
    chance: random.Random
    killed: list[int] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, every_seconds: float) -> None:
        while not self.stopping.wait(every_seconds):
            if running := function_processes():
                process = self.chance.choice(running)
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                    self.killed.append(process)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _messages_when_quiet(sqs: Any, queue_url: str) -> int:  # noqa: ANN401 - a boto3 client
    deadline = time.monotonic() + QUIET_SECONDS
    while (left := _messages(sqs, queue_url)) and time.monotonic() < deadline:
        time.sleep(1)
    return left


def _messages(sqs: Any, queue_url: str) -> int:  # noqa: ANN401 - a boto3 client
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
    return sum(int(found[name]) for name in names)
