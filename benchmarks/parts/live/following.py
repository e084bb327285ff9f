"""Benchmark subscribers in threads, and waiting for a condition with a deadline."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from signalbox.clients.live.cursor import PatternCursor
from signalbox.errors import UnavailableError

READY_SECONDS = 300.0


class Subscriber(Protocol):
    """A client that follows topics."""

    cursor: PatternCursor

    def follow(self, over: threading.Event) -> None:
        """Follow until `over` is set."""


@contextmanager
def following(subscribers: Sequence[Subscriber]) -> Iterator[None]:
    """Run subscribers in threads, starting the block when all have caught up. Raises `UnavailableError`."""
    over = threading.Event()
    threads = [threading.Thread(target=one.follow, args=(over,), daemon=True) for one in subscribers]
    for thread in threads:
        thread.start()
    try:
        if not wait(lambda: all(one.cursor.is_caught_up for one in subscribers), seconds=READY_SECONDS):
            raise UnavailableError(f"not all subscribers were ready within {READY_SECONDS:.0f} s")
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def wait(is_so: Callable[[], bool], *, seconds: float) -> bool:
    """Wait for a condition; return whether it became true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
