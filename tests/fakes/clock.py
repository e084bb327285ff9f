"""Clocks that only tests move."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@dataclass
class MemoryTime:
    """A clock that advances only by `pass_by` and `sleep`."""

    moment: datetime = START

    def now(self) -> datetime:
        return self.moment

    def pass_by(self, time: timedelta) -> None:
        self.moment += time

    def sleep(self, seconds: float) -> None:
        self.pass_by(timedelta(seconds=seconds))


@dataclass
class Seconds:
    """A clock in seconds, which is also the function that returns them."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now
