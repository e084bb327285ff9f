"""The time of a scheduled task, which works in parts, so that no user's resources keep it from those of others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

Value = TypeVar("Value")

PART = 20
# Multiples of it are spread evenly over the values at every interval of the runs.
GOLDEN = 0.618033988749895


@dataclass(frozen=True, slots=True)
class TaskTime:
    """The time of one run of a task, which ends at `until`."""

    now: Callable[[], datetime]
    until: datetime

    def parts(self, values: Iterable[Value]) -> Iterator[Sequence[Value]]:
        """Yield values in parts while there is time.

        Each run begins at another one, so that none waits for ever behind those that a run has no time for.
        """
        every = list(values)
        first = int(self.now().timestamp() * GOLDEN % 1 * len(every))
        in_order = [*every[first:], *every[:first]]
        for start in range(0, len(in_order), PART):
            if self.now() >= self.until:
                return
            yield in_order[start : start + PART]

    def half(self) -> "TaskTime":
        """Return half of the time that is left."""
        now = self.now()
        return replace(self, until=now + (self.until - now) / 2)
