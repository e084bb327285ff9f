"""What a subscriber makes of each message: what it was told to do, a reason not to, or another try later."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from signalbox.clients.sarracenia.downloader import Done
from signalbox.errors import RejectedError, UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement, InvalidAnnouncement
from signalbox.sarracenia.formats.payloads import Payload, announcement
from signalbox.sarracenia.subscription.duplicates import Memory, duplicate_key, is_duplicate
from signalbox.sarracenia.subscription.filters import Accepted, Filter, Rejected, full_url
from signalbox.sarracenia.subscription.limits import Limits

PAUSE_GROWTH = 3
CONTENT_TYPE = "content_type"  # AMQP's property; a header only where the body would be taken for another format


class Outcome(StrEnum):
    """What became of a message."""

    ACCEPTED = "accepted"
    """Shown, where nothing is downloaded."""
    DOWNLOADED = "downloaded"
    UNCHANGED = "unchanged"
    LINKED = "linked"
    REMOVED = "removed"
    DIRECTORY = "directory"
    RENAMED = "renamed"
    BLOCK = "block"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    MESSAGE_TOO_OLD = "message too old"
    FILE_TOO_OLD = "file too old"
    INVALID = "invalid"
    REFUSED = "refused"
    """Would lead out of the directory, or to a source that is not known."""
    FAILED = "failed"
    """Will be tried again."""
    GIVEN_UP = "given up"


CODES = {
    Outcome.UNCHANGED: 304,
    Outcome.BLOCK: 206,
    Outcome.DUPLICATE: 304,
    Outcome.REJECTED: 404,
    Outcome.MESSAGE_TOO_OLD: 504,
    Outcome.FILE_TOO_OLD: 410,
    Outcome.INVALID: 417,
    Outcome.REFUSED: 422,
    Outcome.FAILED: 499,
    Outcome.GIVEN_UP: 503,
}
SUCCESS = 201
PROBLEMS = frozenset({Outcome.INVALID, Outcome.REFUSED, Outcome.FAILED, Outcome.GIVEN_UP})


@dataclass(frozen=True, slots=True)
class Received:
    """A message as it came from a queue."""

    body: str
    headers: Mapping[str, str]
    exchange: str
    routing_key: str

    @property
    def payload(self) -> Payload:
        """Return what of it is Sarracenia's."""
        headers = {name: value for name, value in self.headers.items() if name != CONTENT_TYPE}
        return Payload(self.body, headers, self.headers.get(CONTENT_TYPE))


@dataclass(frozen=True, slots=True)
class Failed:
    """A message that waits for another try."""

    received: Received
    attempts: int
    due_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a message, and why."""

    outcome: Outcome
    received: Received
    announcement: Announcement | None = None
    reason: str = ""
    attempts: int = 1

    @property
    def code(self) -> int:
        """Return the code that sr3's reports have for it."""
        return CODES.get(self.outcome, SUCCESS)

    def as_document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "outcome": self.outcome.value,
            "code": self.code,
            "url": self.announcement and full_url(self.announcement),
            "path": self.announcement and self.announcement.path,
            "reason": self.reason or None,
            "attempts": self.attempts,
            "exchange": self.received.exchange,
            "routing_key": self.received.routing_key,
            "headers": dict(self.received.headers),
            "body": self.received.body,
        }


class Retries(Protocol):
    """Where failed messages wait."""

    def add(self, failed: Failed) -> None:
        """Store a message; it is there when this returns, whatever happens to the program or the machine."""
        ...


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Handles messages; whatever becomes of one, it can be acknowledged afterwards."""

    carry_out: Callable[[Announcement, Accepted], Done | None]
    memory: Memory
    retries: Retries
    wanted: Filter = field(default_factory=Filter)
    limits: Limits = field(default_factory=Limits)

    def handle(self, received: Received, *, now: datetime, earlier_attempts: int = 0) -> Result:
        """Do what a message asks for, unless it is not wanted; what fails now is stored to be tried again."""
        attempts = earlier_attempts + 1
        try:
            told = announcement(received.payload)
        except InvalidAnnouncement as error:
            return Result(Outcome.INVALID, received, reason="; ".join(str(error).splitlines()), attempts=attempts)
        verdict = self._verdict(told, now=now)
        if not isinstance(verdict, Accepted):
            outcome, reason = verdict
            return Result(outcome, received, told, reason, attempts)
        # What failed was seen before, by itself.
        if not earlier_attempts and self._is_duplicate(told, now=now):
            return Result(Outcome.DUPLICATE, received, told, attempts=attempts)
        result = self._carried_out(received, told, verdict, attempts=attempts, now=now)
        # Not before: what is interrupted comes again, and is no duplicate then.
        self._remember(told, now=now)
        return result

    def _verdict(self, told: Announcement, *, now: datetime) -> Accepted | tuple[Outcome, str]:
        if (reason := _too_old(told.published_at, self.limits.message_age, now=now)) is not None:
            return Outcome.MESSAGE_TOO_OLD, reason
        if told.modified_at and (reason := _too_old(told.modified_at, self.limits.file_age, now=now)) is not None:
            return Outcome.FILE_TOO_OLD, reason
        try:
            verdict = self.wanted.verdict(told)
        except RejectedError as error:  # an expression that takes too long
            return Outcome.REFUSED, str(error)
        return (Outcome.REJECTED, verdict.reason) if isinstance(verdict, Rejected) else verdict

    def _is_duplicate(self, told: Announcement, *, now: datetime) -> bool:
        ttl = self.limits.duplicates_ttl
        if ttl is None:
            return False
        key = duplicate_key(told, self.limits.basis)
        if not is_duplicate(self.memory.last_seen(key), now=now, ttl=ttl):
            return False
        self.memory.see(key, now=now)
        return True

    def _remember(self, told: Announcement, *, now: datetime) -> None:
        if self.limits.duplicates_ttl is not None:
            self.memory.see(duplicate_key(told, self.limits.basis), now=now)

    def _carried_out(
        self, received: Received, told: Announcement, accepted: Accepted, *, attempts: int, now: datetime
    ) -> Result:
        try:
            done = self.carry_out(told, accepted)
        except RejectedError as error:
            return Result(Outcome.REFUSED, received, told, str(error), attempts)
        except UnavailableError as error:
            if attempts >= self.limits.attempts:
                return Result(Outcome.GIVEN_UP, received, told, str(error), attempts)
            due_at = now + self.limits.pause * PAUSE_GROWTH ** (attempts - 1)
            self.retries.add(Failed(received, attempts, due_at, str(error)))
            return Result(Outcome.FAILED, received, told, str(error), attempts)
        return Result(Outcome.ACCEPTED if done is None else Outcome(done.value), received, told, attempts=attempts)


def _too_old(moment: datetime, limit: timedelta | None, *, now: datetime) -> str | None:
    age = now - moment
    return f"{age.total_seconds():.0f} s old" if limit is not None and age > limit else None
