"""A value that a function instance reads once and keeps for a time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Kept(Generic[T]):
    """A value that is read again when it is older than `age`; no text shows it."""

    read: Callable[[], T]
    age: timedelta
    now: Callable[[], datetime]
    _value: T | None = field(default=None, repr=False)
    _until: datetime | None = None

    def get(self, *, again: bool = False) -> T:
        """Return the value; `again` reads it whatever its age."""
        now = self.now()
        if self._value is None or self._until is None or now >= self._until or again:
            self._value, self._until = self.read(), now + self.age
        return self._value
