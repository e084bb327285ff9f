"""What all loads share: the interface, repeated calls, and what was sent."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.parts.soak.accounts import Account, DeadLetter, Stamp
from signalbox.errors import SignalboxError

# What a client meets when functions are killed and calls fail; it tries again.
PASSING = (BotoCoreError, ClientError, SignalboxError)
TRIES, PAUSE_SECONDS = 20, 1.0

Answer = TypeVar("Answer")


class Load(Protocol):
    """The load of one capability, with clients that send and clients that receive."""

    name: str

    def run(self, until: Callable[[], bool]) -> None:
        """Send and receive until `until` returns true; then stop sending."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return the number of sent messages, and of arrivals."""
        ...

    def is_complete(self) -> bool:
        """Return whether every message that was sent has arrived. Dead letters never arrive."""
        ...

    def close(self) -> None:
        """Stop receiving."""
        ...

    def accounts(self, letters: Sequence[DeadLetter]) -> Sequence[Account]:
        """Return the accounts; call this after `close`, with the stage's dead letters."""
        ...


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


def insistently(call: Callable[[], Answer]) -> Answer:
    """Return the result of a call; repeat it after errors that pass."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except PASSING:
            time.sleep(PAUSE_SECONDS)
    return call()
