"""The clock that every capability receives as a port."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The current time, and waiting."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""

    def sleep(self, seconds: float) -> None:
        """Block for `seconds`."""
