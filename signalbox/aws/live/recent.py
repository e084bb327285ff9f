"""The values that a function instance has read in the last second, so that not every batch reads them.

A value is as old as the start of its read. Its age is measured by two clocks, and the older age counts: the monotonic
clock, which is never set, and the system's time, which also advances while Lambda freezes an instance.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from signalbox.live.rights.settling import RIGHTS_KEPT_SECONDS

MAXIMUM_VALUES = 20_000

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Moment(NamedTuple):
    """A moment by the monotonic clock and by the system's time, in seconds."""

    monotonic: float
    system: float


def system_moment() -> Moment:
    """Return the current moment."""
    return Moment(time.monotonic(), time.time())


@dataclass(frozen=True, slots=True)
class Recent(Generic[Key, Value]):
    """Values by key, each usable for `RIGHTS_KEPT_SECONDS` from the start of its strongly consistent read.

    A caller that knows that a value has not changed may use it for longer.
    """

    now: Callable[[], Moment] = system_moment
    _known: dict[Key, tuple[Moment, Value]] = field(default_factory=dict)

    def get(self, key: Key, *, within: float | None = None) -> Value | None:
        """Return a value that was read recently, or in the last `within` seconds; otherwise None."""
        known, seconds = self._known.get(key), RIGHTS_KEPT_SECONDS if within is None else within
        return known[1] if known is not None and _is_within(seconds, known[0], self.now()) else None

    def put(self, key: Key, value: Value, *, read_at: Moment) -> None:
        """Keep a value whose read began at a moment."""
        if len(self._known) >= MAXIMUM_VALUES:
            self._known.clear()
        self._known[key] = read_at, value


def _is_within(seconds: float, read_at: Moment, now: Moment) -> bool:
    return all(0 <= later - earlier < seconds for earlier, later in zip(read_at, now, strict=True))
