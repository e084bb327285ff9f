"""The settings of kept queues: for how long the messages of a queue are kept, and who may read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.errors import RejectedError
from signalbox.queues import QueueName

SHORTEST = timedelta(minutes=5)
LONGEST = timedelta(days=14)  # the lifecycle rule of the bucket deletes what is older: stacks/state_stack.py


class InvalidKeepTime(RejectedError):
    """Raised for a time for which messages cannot be kept."""


@dataclass(frozen=True, slots=True)
class KeepSetting:
    """The setting of a queue since `set_at`; without `keep_for` it is removed, and what is kept is being deleted.

    `readers` are the IAM unique ids (`AIDA…`, `AROA…`) of the users and roles that may read the messages, with the
    names by which they were given. With `by_router`, the queue is a declared one, whose copies the function `route`
    keeps; a split of it does not keep them again.
    """

    queue: QueueName
    keep_for: timedelta | None
    set_at: datetime
    readers: Mapping[str, str] = field(default_factory=dict)
    by_router: bool = False

    def may_read(self, principal: str) -> bool:
        """Return whether the user or role with an IAM unique id may read the kept messages."""
        return self.keep_for is not None and principal in self.readers

    def oldest(self, now: datetime) -> datetime:
        """Return the time before which messages are no longer kept."""
        return now if self.keep_for is None else now - self.keep_for


class KeepSettings(Protocol):
    """The stored settings."""

    def find(self, queue: QueueName) -> KeepSetting | None:
        """Return the setting of a queue, or None if it never had one or all is deleted."""
        ...

    def every(self) -> Sequence[KeepSetting]:
        """Return all settings, also removed ones whose messages are being deleted."""
        ...

    def forget(self, setting: KeepSetting) -> None:
        """Delete a removed setting, unless it was set again."""
        ...


def keep_time(seconds: int) -> timedelta:
    """Return the time for which messages are kept. Raises `InvalidKeepTime`."""
    if not SHORTEST.total_seconds() <= seconds <= LONGEST.total_seconds():
        raise InvalidKeepTime(f"messages can be kept for 5 minutes to {LONGEST.days} days, not for {seconds} s")
    return timedelta(seconds=seconds)
