"""How long tests wait: until what they count is there, or for a deadline far beyond what any machine takes.

A deadline only ends a test that waits for nothing, so that it is the same on an idle and on a busy machine.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SOON_SECONDS = 240.0


class Deadline:
    """The end of a wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Begin anew, since there is progress."""
        self._end = time.monotonic() + self.seconds

    def is_over(self) -> bool:
        """Return whether the time is used up."""
        return time.monotonic() >= self._end


def wait_for(
    look: Callable[[], T | None],
    what: str,
    *,
    seconds: float = SOON_SECONDS,
    every: float = 0.1,
    progress: Callable[[], object] | None = None,
) -> T:
    """Return the first true result of `look`; fail with the missing `what` at the deadline.

    With `progress`, the deadline is renewed whenever its value changes: `seconds` are then for one step.
    """
    deadline, value = Deadline(seconds), progress and progress()
    while not (found := look()):
        if progress and value != (value := progress()):
            deadline.renew()
        assert not deadline.is_over(), f"within {seconds} s, not {what}"
        time.sleep(every)
    return found
