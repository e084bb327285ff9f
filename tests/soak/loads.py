"""What all loads share: the interface, repeated calls, and what was sent."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.errors import SignalboxError
from tests.soak.accounts import Account, DeadLetter, Outage, Stamp

# What a client meets when functions are killed and calls fail; it tries again.
PASSING = (BotoCoreError, ClientError, SignalboxError)
TRIES, PAUSE_SECONDS = 20, 1.0
LEAD = 0.02  # of its goal, a load sends at most before the others

Answer = TypeVar("Answer")


class Load(Protocol):
    """The load of one capability, with clients that send and clients that receive."""

    name: str

    def run(self, until: Callable[[], bool], is_ahead: Callable[[], bool]) -> None:
        """Send and receive until `until` returns true; send nothing while `is_ahead` returns true."""

    def sent_count(self) -> int:
        """Return the number of sent messages."""

    def progress(self) -> tuple[int, int]:
        """Return the number of sent messages, and of arrivals."""

    def is_complete(self) -> bool:
        """Return whether every message that was sent has arrived. Dead letters never arrive."""

    def close(self) -> None:
        """Stop receiving."""

    def counts(self) -> Mapping[str, int]:
        """Return further numbers, by what they count."""

    def accounts(self, letters: Sequence[DeadLetter], outages: Sequence[Outage]) -> Sequence[Account]:
        """Return the accounts; call this after `close`, with the stage's dead letters and its outages."""


@dataclass(slots=True)
class Sent:
    """The messages that were sent, with their times. Thread-safe."""

    times: dict[Stamp, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, stamps: Sequence[Stamp], *, at: float) -> None:
        """Note messages that the service accepted; the first time counts."""
        with self._lock:
            for stamp in stamps:
                self.times.setdefault(stamp, at)

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, slots=True)
class Pace:
    """Keeps loads at the same share of their goals, so that none takes the processors of the others."""

    goals: Mapping[str, int]
    """Messages to send, by the name of the load; a load without a goal is not paced."""
    loads: Sequence[Load]
    lead: float = LEAD

    def is_ahead(self, load: Load) -> bool:
        """Return whether a load has sent more than its share."""
        if load.name not in self.goals:
            return False
        return self._share(load) > min(map(self._share, self._paced)) + self.lead

    @property
    def _paced(self) -> list[Load]:
        return [one for one in self.loads if one.name in self.goals]

    def _share(self, load: Load) -> float:
        return load.sent_count() / self.goals[load.name]


def publish(client: ExchangeClient, exchange: str, stamps: Sequence[Stamp], sent: Sent, *, mark: str) -> None:
    """Publish in order, each message until SQS has confirmed it; `mark` makes their deduplication ids unique."""
    left = list(stamps)
    while left:
        requests = [PublishRequest(one.stream, str(one.number), {}, f"{mark}-{one.number}") for one in left]
        at, done = time.time(), 0
        with suppress(*PASSING):
            for result in client.publish_all(exchange, requests):
                if result.message_id is None:
                    break
                sent.add([left[done]], at=at)
                done += 1
        left = left[done:]


def insistently(call: Callable[[], Answer]) -> Answer:
    """Return the result of a call; repeat it after errors that pass."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except PASSING:
            time.sleep(PAUSE_SECONDS)
    return call()
