"""How far a replay is: messages are claimed before they are sent, so that no retry sends one a second time."""

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
REPLAY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # a header's value, a part of a key in S3
HIGHEST_RATE = 1_000
LARGEST_CLAIM = 100
# SQS forgets de-duplication ids after five minutes; this much earlier nothing is sent that relies on them.
REMEMBERED, MARGIN = timedelta(minutes=5), timedelta(seconds=30)
LISTED = 1_000  # of the ids of refused messages: the record is one small object


class InvalidReplay(RejectedError):
    """Raised when a replay is asked for in a way that cannot be, or its record cannot be read."""


class State(StrEnum):
    """How far a replay is: `planned` when it has been counted only."""

    PLANNED = "planned"
    SENDING = "sending"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Claim:
    """Messages that may have been sent: they are written down before the first of them is."""

    ids: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a claim's messages; of the doubtful it is not known whether SQS took them.

    `is_stopped` says that SQS takes nothing at all for now.
    """

    taken: Collection[str] = ()
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    doubtful: Collection[str] = ()
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """A replay's record.

    `asked` is what was asked for, by the job's arguments; `source` what pins it down, such as a table's snapshot.
    `messages` and `size_bytes` were counted before anything was sent; `position` is how many of the source's messages
    are behind us. `last` are the ids that the last claim sent; `kept` are those of runs that were killed then, of which
    dead letters are only left to be deleted.
    """

    replay_id: ReplayId
    asked: Mapping[str, str]
    source: str
    messages: int
    size_bytes: int
    planned_at: datetime
    state: State = State.PLANNED
    position: int = 0
    sent: int = 0
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refused_count: int = 0
    doubtful: tuple[str, ...] = ()
    claim: Claim | None = None
    last: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def claimed(self, ids: Sequence[str], *, at: datetime) -> "Progress":
        """Return the record before messages are sent."""
        return replace(self, state=State.SENDING, claim=Claim(tuple(ids), at))

    def settled(self, sent: Sent) -> "Progress":
        """Return the record after a claim was sent; its messages are behind us, whatever became of them."""
        claim = self.claim or Claim((), self.planned_at)
        return replace(
            self,
            position=self.position + len(claim.ids),
            sent=self.sent + len(sent.taken),
            refused=dict([*self.refused.items(), *sent.refused.items()][:LISTED]),
            refused_count=self.refused_count + len(sent.refused),
            doubtful=(*self.doubtful, *(one for one in claim.ids if one in sent.doubtful)),
            claim=None,
            last=tuple(one for one in claim.ids if one in sent.taken),
        )

    def resumed(self, *, now: datetime, is_fifo: bool) -> "Progress":
        """Return the record from which a retry goes on.

        A claim that nobody settled stays, to be sent again, while a FIFO queue still knows what it took of it; else
        its messages are in doubt and not sent again.
        """
        found = replace(self, last=(), kept=(*self.kept, *self.last))
        if found.claim is None or (is_fifo and now - found.claim.at < REMEMBERED - MARGIN):
            return found
        return found.settled(Sent(doubtful=found.claim.ids))

    def finished(self) -> "Progress":
        """Return the record of a replay that has nothing left to send."""
        return replace(self, state=State.DONE, claim=None)

    @property
    def left_alone(self) -> frozenset[str]:
        """Return the ids of dead letters that were not sent for good, or perhaps were, and so stay where they are."""
        return frozenset((*self.doubtful, *self.refused))

    def to_document(self) -> dict[str, object]:
        """Return the record as JSON has it."""
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
    def parse(cls, document: object) -> "Progress":
        """Return the record in a JSON document. Raises `InvalidReplay`."""
        problems = Problems()
        told = Section.of(document, "replay", problems)
        if told.fields.get("version") != VERSION:
            told.problem("version", f"expected {VERSION}, not {told.fields.get('version')!r}")
        progress = cls(
            replay_id=ReplayId(told.required_text("replay_id")),
            asked=told.texts_by_name("asked") or {},
            source=told.text("source") or "",
            messages=told.whole_number("messages") or 0,
            size_bytes=told.whole_number("size_bytes") or 0,
            planned_at=_moment(told, "planned_at"),
            state=_state(told),
            position=told.whole_number("position") or 0,
            sent=told.whole_number("sent") or 0,
            refused=told.texts_by_name("refused") or {},
            refused_count=told.whole_number("refused_count") or 0,
            doubtful=told.texts("doubtful"),
            claim=_claim(told),
            last=told.texts("last"),
            kept=told.texts("kept"),
        )
        problems.refuse(InvalidReplay)
        return progress


@dataclass(frozen=True, slots=True)
class Pace:
    """So many messages a second, from a moment on (in seconds of any clock), and in bursts of a second at most."""

    rate: int
    started: float

    @property
    def burst(self) -> int:
        """Return how many messages are claimed and sent at once."""
        return min(self.rate, LARGEST_CLAIM)

    def seconds_until_next(self, sent: int, *, now: float) -> float:
        """Return how long to wait before the next burst, when so many have been sent."""
        return max(0.0, self.started + sent / self.rate - now)


def parse_replay_id(text: str) -> ReplayId:
    """Return a replay's id. Raises `InvalidReplay`."""
    if REPLAY_ID.fullmatch(text):
        return ReplayId(text)
    raise InvalidReplay(
        f"replay {text[:80]!r}: expected 1 to 64 letters, digits, '-' and '_', and none of the last two first"
    )


def parse_rate(text: str) -> int:
    """Return how many messages a second. Raises `InvalidReplay`."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:10]) <= HIGHEST_RATE:
        return int(text)
    raise InvalidReplay(f"rate {text[:80]!r}: expected 1 to {HIGHEST_RATE} messages a second")


def seconds_needed(messages: int, rate: int) -> int:
    """Return how long so many messages take at least."""
    return math.ceil(messages / rate)


def _moment(told: Section, name: str) -> datetime:
    text = told.required_text(name)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        told.problem(name, f"expected a moment, not {text!r}")
        return datetime.fromtimestamp(0, UTC)


def _state(told: Section) -> State:
    text = told.required_text("state")
    if text in set(State):
        return State(text)
    told.problem("state", f"expected one of {', '.join(State)}, not {text!r}")
    return State.DONE


def _claim(told: Section) -> Claim | None:
    if told.fields.get("claim") is None:
        return None
    claim = told.section("claim")
    return Claim(claim.texts("ids"), _moment(claim, "at"))
