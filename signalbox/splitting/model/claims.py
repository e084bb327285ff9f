"""Claims of sessions on messages, and decisions about them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from signalbox.splitting.model.filters import Filter
from signalbox.splitting.model.s3_objects import Unread

SessionId = NewType("SessionId", str)

DEPLOYED = "deployed"
"""The name of the deployed consumer where a session could be named; no session may have it."""


class Mode(StrEnum):
    """The ownership of claimed messages: the session takes them, takes all of them, or receives copies of them."""

    STEAL = "steal"
    EXCLUSIVE = "exclusive"
    MIRROR = "mirror"


class FilterOutcome(StrEnum):
    """The outcome of a session's filter."""

    MATCH = "match"
    NO_MATCH = "no match"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Claim:
    """A session's claim on one queue."""

    session: SessionId
    mode: Mode
    filter: Filter


@dataclass(frozen=True, slots=True)
class SessionVerdict:
    """The outcome of one session's filter for a message, with the reason."""

    session: SessionId
    mode: Mode
    outcome: FilterOutcome
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The routing of a message: its owner, None for the deployed consumer, and the sessions that receive copies.

    `unread` is the reason for which a filter saw no metadata of its S3 object.
    """

    owner: SessionId | None
    copies: tuple[SessionId, ...]
    verdicts: tuple[SessionVerdict, ...]
    unread: Unread | None = None

    @property
    def stopped(self) -> tuple[SessionVerdict, ...]:
        """Return the verdicts whose sessions are to be cancelled."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is FilterOutcome.STOPPED)
