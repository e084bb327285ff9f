"""The time of a scheduled task, which works in parts, so that no user's resources keep it from those of others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
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
        in_order = self._in_order(values)
        for start in range(0, len(in_order), PART):
            if self.now() >= self.until:
                return
            yield in_order[start : start + PART]

    def shares(self, values: Iterable[Value]) -> Iterator[tuple[Value, datetime]]:
        """Yield each value with the end of its equal share of the time that is left, as `parts` does."""
        in_order = self._in_order(values)
        for before, value in enumerate(in_order):
            left = self.until - self.now()
            if left <= timedelta(0):
                return
            yield value, self.until - left + left / (len(in_order) - before)

    def _in_order(self, values: Iterable[Value]) -> list[Value]:
        every = list(values)
        first = int(self.now().timestamp() * GOLDEN % 1 * len(every))
        return [*every[first:], *every[:first]]

    def half(self) -> "TaskTime":
        """Return half of the time that is left."""
        now = self.now()
        return replace(self, until=now + (self.until - now) / 2)
