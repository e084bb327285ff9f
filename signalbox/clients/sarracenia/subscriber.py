"""Handling of one received announcement: apply it, drop it with a reason, or store it for another attempt."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from signalbox.clients.sarracenia.downloader import DownloadOutcome
from signalbox.errors import RejectedError, UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement, InvalidAnnouncement
from signalbox.sarracenia.formats.payloads import Payload, announcement
from signalbox.sarracenia.subscription.duplicates import DuplicateCache, duplicate_key, is_duplicate
from signalbox.sarracenia.subscription.filters import Accepted, FileFilter, Rejected, full_url
from signalbox.sarracenia.subscription.limits import Limits

PAUSE_GROWTH = 3
CONTENT_TYPE = "content_type"  # AMQP's property; a header only where the body would be taken for another format


class MessageOutcome(StrEnum):
    """The outcome of handling a message."""

    ACCEPTED = "accepted"
    """Printed, when nothing is downloaded."""
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
    """Leads out of the directory, or to an unsupported source."""
    FAILED = "failed"
    """Stored for another attempt."""
    GIVEN_UP = "given up"


CODES = {
    MessageOutcome.UNCHANGED: 304,
    MessageOutcome.BLOCK: 206,
    MessageOutcome.DUPLICATE: 304,
    MessageOutcome.REJECTED: 404,
    MessageOutcome.MESSAGE_TOO_OLD: 504,
    MessageOutcome.FILE_TOO_OLD: 410,
    MessageOutcome.INVALID: 417,
    MessageOutcome.REFUSED: 422,
    MessageOutcome.FAILED: 499,
    MessageOutcome.GIVEN_UP: 503,
}
SUCCESS = 201
PROBLEMS = frozenset({MessageOutcome.INVALID, MessageOutcome.REFUSED, MessageOutcome.FAILED, MessageOutcome.GIVEN_UP})


@dataclass(frozen=True, slots=True)
class AnnouncedMessage:
    """A message received from a queue."""

    body: str
    headers: Mapping[str, str]
    exchange: str
    routing_key: str

    @property
    def payload(self) -> Payload:
        """Return the Sarracenia payload of the message."""
        headers = {name: value for name, value in self.headers.items() if name != CONTENT_TYPE}
        return Payload(self.body, headers, self.headers.get(CONTENT_TYPE))


@dataclass(frozen=True, slots=True)
class FailedMessage:
    """A message that is stored for another attempt."""

    received: AnnouncedMessage
    attempts: int
    due_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class MessageResult:
    """The outcome of a message, with its reason."""

    outcome: MessageOutcome
    received: AnnouncedMessage
    announcement: Announcement | None = None
    reason: str = ""
    attempts: int = 1

    @property
    def code(self) -> int:
        """Return the code that sr3's reports use for the outcome."""
        return CODES.get(self.outcome, SUCCESS)

    def as_document(self) -> dict[str, object]:
        """Return the result as a JSON object."""
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


class RetryStore(Protocol):
    """Stores failed messages until their next attempt."""

    def add(self, failed: FailedMessage) -> None:
        """Store a message durably before returning: it survives a crash of the program or the machine."""
        ...


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Handles messages; each can be acknowledged after `handle` returns, whatever its outcome."""

    action: Callable[[Announcement, Accepted], DownloadOutcome | None]
    """Applies an accepted announcement; returns None when nothing is downloaded."""
    duplicates: DuplicateCache
    retries: RetryStore
    file_filter: FileFilter = field(default_factory=FileFilter)
    limits: Limits = field(default_factory=Limits)

    def handle(self, received: AnnouncedMessage, *, now: datetime, earlier_attempts: int = 0) -> MessageResult:
        """Apply a message unless it is invalid, filtered out, too old or a duplicate; store it if that fails."""
        attempts = earlier_attempts + 1
        try:
            announced = announcement(received.payload)
        except InvalidAnnouncement as error:
            reason = "; ".join(str(error).splitlines())
            return MessageResult(MessageOutcome.INVALID, received, reason=reason, attempts=attempts)
        verdict = self._verdict(announced, now=now)
        if not isinstance(verdict, Accepted):
            outcome, reason = verdict
            return MessageResult(outcome, received, announced, reason, attempts)
        # A retried message is in the cache because of its own first attempt.
        if not earlier_attempts and self._is_duplicate(announced, now=now):
            return MessageResult(MessageOutcome.DUPLICATE, received, announced, attempts=attempts)
        result = self._apply(received, announced, verdict, attempts=attempts, now=now)
        # Recorded last: a message whose handling was interrupted is delivered again and must not be a duplicate then.
        self._record(announced, now=now)
        return result

    def _verdict(self, announced: Announcement, *, now: datetime) -> Accepted | tuple[MessageOutcome, str]:
        limits = self.limits
        if (reason := _too_old(announced.published_at, limits.message_age, now=now)) is not None:
            return MessageOutcome.MESSAGE_TOO_OLD, reason
        if announced.modified_at and (reason := _too_old(announced.modified_at, limits.file_age, now=now)) is not None:
            return MessageOutcome.FILE_TOO_OLD, reason
        try:
            verdict = self.file_filter.verdict(announced)
        except RejectedError as error:  # an expression that takes too long
            return MessageOutcome.REFUSED, str(error)
        return (MessageOutcome.REJECTED, verdict.reason) if isinstance(verdict, Rejected) else verdict

    def _is_duplicate(self, announced: Announcement, *, now: datetime) -> bool:
        ttl = self.limits.duplicates_ttl
        if ttl is None:
            return False
        key = duplicate_key(announced, self.limits.basis)
        if not is_duplicate(self.duplicates.last_seen(key), now=now, ttl=ttl):
            return False
        self.duplicates.record(key, now=now)
        return True

    def _record(self, announced: Announcement, *, now: datetime) -> None:
        if self.limits.duplicates_ttl is not None:
            self.duplicates.record(duplicate_key(announced, self.limits.basis), now=now)

    def _apply(
        self, received: AnnouncedMessage, announced: Announcement, accepted: Accepted, *, attempts: int, now: datetime
    ) -> MessageResult:
        try:
            applied = self.action(announced, accepted)
        except RejectedError as error:
            return MessageResult(MessageOutcome.REFUSED, received, announced, str(error), attempts)
        except UnavailableError as error:
            if attempts >= self.limits.attempts:
                return MessageResult(MessageOutcome.GIVEN_UP, received, announced, str(error), attempts)
            due_at = now + self.limits.pause * PAUSE_GROWTH ** (attempts - 1)
            self.retries.add(FailedMessage(received, attempts, due_at, str(error)))
            return MessageResult(MessageOutcome.FAILED, received, announced, str(error), attempts)
        outcome = MessageOutcome.ACCEPTED if applied is None else MessageOutcome(applied.value)
        return MessageResult(outcome, received, announced, attempts=attempts)


def _too_old(moment: datetime, limit: timedelta | None, *, now: datetime) -> str | None:
    age = now - moment
    return f"{age.total_seconds():.0f} s old" if limit is not None and age > limit else None
