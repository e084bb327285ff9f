"""The progress of a replay: messages are claimed before they are sent, so that no retry sends one twice."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import NewType

from signalbox.documents import Problems, Section
from signalbox.errors import RejectedError

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
    """A replay's record; its fields have the names of the stored document.

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
        claim = self.claim and {"ids": list(self.claim.ids), "at": self.claim.at.isoformat()}
        return {
            "version": VERSION,
            "replay_id": self.replay_id,
            "state": str(self.state),
            "asked": dict(self.asked),
            "source": self.source,
            "messages": self.messages,
            "size_bytes": self.size_bytes,
            "planned_at": self.planned_at.isoformat(),
            "position": self.position,
            "sent": self.sent,
            "refused": dict(self.refused),
            "refused_count": self.refused_count,
            "doubtful": list(self.doubtful),
            "claim": claim,
            "last": list(self.last),
            "kept": list(self.kept),
        }

    @classmethod
    def parse(cls, document: object) -> "ReplayProgress":
        """Parse a JSON document. Raises `InvalidReplay`, which lists all problems."""
        problems = Problems()
        section = Section.of(document, "replay", problems)
        if section.fields.get("version") != VERSION:
            section.problem("version", f"expected {VERSION}, not {section.fields.get('version')!r}")
        progress = cls(
            replay_id=ReplayId(section.required_text("replay_id")),
            asked=section.texts_by_name("asked") or {},
            source=section.text("source") or "",
            messages=section.whole_number("messages") or 0,
            size_bytes=section.whole_number("size_bytes") or 0,
            planned_at=_moment(section, "planned_at"),
            state=_state(section),
            position=section.whole_number("position") or 0,
            sent=section.whole_number("sent") or 0,
            refused=section.texts_by_name("refused") or {},
            refused_count=section.whole_number("refused_count") or 0,
            doubtful=section.texts("doubtful"),
            claim=_claim(section),
            last=section.texts("last"),
            kept=section.texts("kept"),
        )
        problems.refuse(InvalidReplay)
        return progress


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


def _moment(section: Section, name: str) -> datetime:
    text = section.required_text(name)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        section.problem(name, f"expected a time in ISO 8601, not {text!r}")
        return datetime.fromtimestamp(0, UTC)


def _state(section: Section) -> ReplayState:
    text = section.required_text("state")
    if text in set(ReplayState):
        return ReplayState(text)
    section.problem("state", f"expected one of {', '.join(ReplayState)}, not {text!r}")
    return ReplayState.DONE


def _claim(section: Section) -> ReplayClaim | None:
    if section.fields.get("claim") is None:
        return None
    claim = section.section("claim")
    return ReplayClaim(claim.texts("ids"), _moment(claim, "at"))
