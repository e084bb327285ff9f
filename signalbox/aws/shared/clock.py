"""The system clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """`Clock`: the system's time."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block for `seconds`."""
        time.sleep(seconds)
