"""The settings of a function, which are environment variables that `stacks/` sets, the system clock and a back-off."""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from signalbox.backoff import Backoff


@dataclass(frozen=True, slots=True)
class Settings:
    """A function's environment variables; a variable that the stack does not set raises `KeyError`."""

    variables: Mapping[str, str]

    def has(self, name: str) -> bool:
        """Return whether the stack sets a variable; it does not for resources of a capability that the stage lacks."""
        return name in self.variables

    def text(self, name: str) -> str:
        """Return a variable as text."""
        return self.variables[name]

    def number(self, name: str) -> int:
        """Return a variable as a whole number."""
        return int(self.variables[name])

    def seconds(self, name: str) -> timedelta:
        """Return a variable, in seconds, as a duration."""
        return timedelta(seconds=float(self.variables[name]))


class SystemClock:
    """`Clock`: the system's time."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block for `seconds`."""
        time.sleep(seconds)


# Of calls outside functions: without a deadline.
BACKOFF = Backoff(SystemClock(), random.random)
