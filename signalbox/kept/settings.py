"""The settings of kept queues: for how long the messages of a queue are kept, and who may read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.errors import RejectedError
from signalbox.queues import QueueName

SHORTEST = timedelta(minutes=5)
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
USER_ID, ROLE_ID = "AIDA", "AROA"
LONGEST = timedelta(days=14)  # the lifecycle rule of the bucket deletes what is older: stacks/state_stack.py


class ReplayRefused(RejectedError):
    """Raised when kept messages cannot be replayed, such as those that the caller may not read."""


class InvalidKeepTime(RejectedError):
    """Raised for a time for which messages cannot be kept."""


@dataclass(frozen=True, slots=True)
class KeepSetting:
    """The setting of a queue since `set_at`; without `keep_for` it is removed, and what is kept is being deleted.

    `readers` are the IAM unique ids (`AIDA…`, `AROA…`) of the users and roles that may read the messages, with the
    names by which they were given. `declared` is the name of a declared queue, which its name in SQS may not contain:
    the function `route` keeps its copies, so a split of it does not keep them again.
    """

    queue: QueueName
    keep_for: timedelta | None
    set_at: datetime
    readers: Mapping[str, str] = field(default_factory=dict)
    declared: str | None = None

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

    def every(self) -> Sequence[KeepSetting]:
        """Return all settings, also removed ones whose messages are being deleted."""

    def forget(self, setting: KeepSetting) -> None:
        """Delete a removed setting, unless it was set again."""


def readable(settings: Mapping[str, KeepSetting | None], principal: str) -> list[KeepSetting]:
    """Return the settings of the queues that are kept; `settings` has those of queues by name.

    Raises `ReplayRefused` if none is kept, or if the user or role with an IAM unique id may not read one that is.
    """
    kept = [one for one in settings.values() if one is not None and one.keep_for is not None]
    if not kept:
        names = ", ".join(map(repr, settings))
        raise ReplayRefused(f"no messages are kept of {names}: `signalbox keep set QUEUE --for 24h` keeps them")
    if unreadable := ", ".join(repr(one.declared or str(one.queue)) for one in kept if not one.may_read(principal)):
        raise ReplayRefused(
            f"you may not read the kept messages of {unreadable}: `signalbox keep set QUEUE --readable-by NAME` "
            f"permits it; you are {principal or 'unknown'}"
        )
    return kept


def principal_of(sender_id: str) -> str:
    """Return the IAM unique id in the `SenderId` of a message or the `UserId` of a caller.

    That of a role is followed by the name of the caller's session. That of a federated user begins with the account's
    number, by which the account itself is known, so its name stays.
    """
    return sender_id.partition(":")[0] if sender_id.startswith(ROLE_ID) else sender_id


def keep_time(seconds: int) -> timedelta:
    """Return the time for which messages are kept. Raises `InvalidKeepTime`."""
    if not SHORTEST.total_seconds() <= seconds <= LONGEST.total_seconds():
        raise InvalidKeepTime(f"messages can be kept for 5 minutes to {LONGEST.days} days, not for {seconds} s")
    return timedelta(seconds=seconds)
