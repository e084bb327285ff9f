"""How long tests wait for effects: in seconds of a machine with a free core, so that a busy machine gets more time."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Longer than a busy machine with two cores takes for any immediate effect.
SOON_SECONDS = 15.0
USUAL = 3  # how many processes share a core while `make test` runs


def slowness() -> float:
    """Return how many processes share a core at the moment, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def scaled(seconds: float) -> float:
    """Return a timeout for one call, by the present load."""
    return seconds * slowness()


def fewer(count: int) -> int:
    """Return how many things to do at once where the product's own limits are in seconds.

    All of `count` under the load that `make test` makes itself, fewer under a higher one, and at least a third.
    """
    return max(-(-count // 3), int(count * min(1, USUAL / slowness())))


class Patience:
    """A deadline that a busy machine reaches later: a second on a core that three processes share counts as a third."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Begin anew, since there is progress."""
        self._left, self._seen = self.seconds, time.monotonic()

    def is_over(self) -> bool:
        """Return whether the time is used up."""
        now = time.monotonic()
        self._left -= (now - self._seen) / slowness()
        self._seen = now
        return self._left <= 0


def wait_for(
    look: Callable[[], T | None],
    what: str,
    *,
    seconds: float = SOON_SECONDS,
    every: float = 0.1,
    progress: Callable[[], object] | None = None,
) -> T:
    """Return the first true result of `look`; fail with the missing `what` when patience is over.

    With `progress`, patience begins anew whenever its value changes: `seconds` are then for one step.
    """
    patience, value = Patience(seconds), progress and progress()
    while not (found := look()):
        if progress and value != (value := progress()):
            patience.renew()
        assert not patience.is_over(), f"within {seconds} s of a free core, not {what}"
        time.sleep(every)
    return found
