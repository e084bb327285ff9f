"""The progress of a replay: messages are claimed before they are sent, so that no retry sends one twice."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NewType

from signalbox.errors import RejectedError
from signalbox.forms import Form, Forms

ReplayId = NewType("ReplayId", str)

VERSION = 1
REPLAY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # is a header's value and a part of an S3 key
MAX_RATE = 1_000
MAX_CLAIM_SIZE = 100
# SQS deduplicates for five minutes; within the margin before their end, no claim is sent again.
DEDUPLICATION_INTERVAL, DEDUPLICATION_MARGIN = timedelta(minutes=5), timedelta(seconds=30)
MAX_LISTED_REFUSALS = 1_000  # ids of refused messages in the record, which is one small object


class InvalidReplay(RejectedError):
    """Raised when the options of a replay are invalid, or its record cannot be parsed."""


class ReplayState(StrEnum):
    """The state of a replay; `planned` means that its messages are counted and none is sent."""

    PLANNED = "planned"
    SENDING = "sending"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ReplayClaim:
    """Messages that may have been sent: the record lists them before the first one is sent."""

    ids: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class SendResult:
    """The outcome of a claim's messages by origin: taken with the new id, refused with the reason, or doubtful.

    It is unknown whether SQS accepted a doubtful message. `is_stopped` means that SQS currently accepts nothing.
    """

    taken: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    doubtful: Collection[str] = ()
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """A replay's record.

    `asked` are the job's arguments that select the messages; `source` is the table snapshot that fixes the selection.
    `messages` and `size_bytes` are counted before the first message is sent; `position` is the number of the source's
    messages that are processed. `last` are the ids that the last claim sent; `kept` are the `last` of killed runs: if
    they are dead letters, only their deletion may be missing.
    """

    replay_id: ReplayId
    asked: Mapping[str, str]
    source: str
    messages: int
    size_bytes: int
    planned_at: datetime
    state: ReplayState = ReplayState.PLANNED
    position: int = 0
    sent: int = 0
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refused_count: int = 0
    doubtful: tuple[str, ...] = ()
    claim: ReplayClaim | None = None
    last: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def claimed(self, ids: Sequence[str], *, at: datetime) -> "ReplayProgress":
        """Return the record with a claim of messages, to be stored before they are sent."""
        return replace(self, state=ReplayState.SENDING, claim=ReplayClaim(tuple(ids), at))

    def settled(self, sent: SendResult) -> "ReplayProgress":
        """Return the record after a claim was sent; all of its messages are processed, whatever their outcome."""
        claim = self.claim or ReplayClaim((), self.planned_at)
        return replace(
            self,
            position=self.position + len(claim.ids),
            sent=self.sent + len(sent.taken),
            refused=dict([*self.refused.items(), *sent.refused.items()][:MAX_LISTED_REFUSALS]),
            refused_count=self.refused_count + len(sent.refused),
            doubtful=(*self.doubtful, *(one for one in claim.ids if one in sent.doubtful)),
            claim=None,
            last=tuple(one for one in claim.ids if one in sent.taken),
        )

    def resumed(self, *, now: datetime, is_fifo: bool) -> "ReplayProgress":
        """Return the record with which the next run continues.

        An unsettled claim remains, and is sent again, while a FIFO queue still deduplicates its messages; otherwise
        they become doubtful and are not sent again.
        """
        found = replace(self, last=(), kept=(*self.kept, *self.last))
        if found.claim is None or (is_fifo and now - found.claim.at < DEDUPLICATION_INTERVAL - DEDUPLICATION_MARGIN):
            return found
        return found.settled(SendResult(doubtful=found.claim.ids))

    def finished(self) -> "ReplayProgress":
        """Return the record of a completed replay."""
        return replace(self, state=ReplayState.DONE, claim=None)

    @property
    def retained(self) -> frozenset[str]:
        """The ids of refused and doubtful messages; as dead letters they stay in their queue."""
        return frozenset((*self.doubtful, *self.refused))

    def to_document(self) -> dict[str, object]:
        """Return the record as a JSON document."""
        return {"version": VERSION, **RECORD.write(self)}

    @classmethod
    def parse(cls, document: Any) -> "ReplayProgress":  # noqa: ANN401 - parsed JSON
        """Parse a JSON document. Raises `InvalidReplay`."""
        try:
            if document["version"] != VERSION:
                raise InvalidReplay(f"the replay has version {document['version']!r}; expected {VERSION}")
            return RECORD.read(document)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidReplay(f"the record of a replay cannot be read: {error!r}") from error


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


RECORD = Forms({datetime: Form(datetime.isoformat, _moment)}).record(ReplayProgress, order=["replay_id", "state"])


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit of `rate` messages a second since `started`, in seconds of any clock, in bursts of at most a second."""

    rate: int
    started: float

    @property
    def burst(self) -> int:
        """The number of messages that are claimed and sent together."""
        return min(self.rate, MAX_CLAIM_SIZE)

    def seconds_until_next(self, sent: int, *, now: float) -> float:
        """Return the delay before the next burst after `sent` messages."""
        return max(0.0, self.started + sent / self.rate - now)


def parse_replay_id(text: str) -> ReplayId:
    """Parse a replay's id. Raises `InvalidReplay`."""
    if REPLAY_ID.fullmatch(text):
        return ReplayId(text)
    raise InvalidReplay(
        f"replay {text[:80]!r}: expected 1 to 64 letters, digits, '-' and '_', the first a letter or digit"
    )


def parse_rate(text: str) -> int:
    """Parse a rate in messages a second. Raises `InvalidReplay`."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:10]) <= MAX_RATE:
        return int(text)
    raise InvalidReplay(f"rate {text[:80]!r}: expected 1 to {MAX_RATE} messages a second")


def min_seconds(messages: int, rate: int) -> int:
    """Return the shortest duration of `messages` at `rate`, in whole seconds."""
    return math.ceil(messages / rate)
