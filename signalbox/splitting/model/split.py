"""The record of a split: its target, its queues, its sessions, and the table of what may follow what."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from signalbox.queues import QueueName, is_fifo
from signalbox.splitting.forwarding.matching import SessionId
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import Target


class Stage(StrEnum):
    """The stages of a split; `STAGES` says which may follow which."""

    STARTING = "starting"
    """Queues are made and the target is switched to its own."""
    SPLIT = "split"
    """Messages are forwarded."""
    DRAINING = "draining"
    """No session is left; the target reads what was forwarded to it."""
    RESTORING = "restoring"
    """The target is switched back."""
    CLEANING = "cleaning"
    """The target is back; what is left over is returned, and the queues are deleted."""


class Phase(StrEnum):
    """The phases of a session; `PHASES` says which may follow which."""

    STARTING = "starting"
    """Its queues are made."""
    MATCHING = "matching"
    """Its filters count, but not every queue is forwarded yet."""
    READY = "ready"
    """It gets its messages."""
    ENDING = "ending"
    """What it did not consume is returned, and its queues are deleted."""


STAGES: dict[Stage | None, frozenset[Stage | None]] = {
    None: frozenset({Stage.STARTING}),
    Stage.STARTING: frozenset({Stage.SPLIT, Stage.RESTORING}),
    Stage.SPLIT: frozenset({Stage.DRAINING}),
    Stage.DRAINING: frozenset({Stage.SPLIT, Stage.RESTORING}),
    Stage.RESTORING: frozenset({Stage.CLEANING}),
    Stage.CLEANING: frozenset({None}),
}
PHASES: dict[Phase | None, frozenset[Phase | None]] = {
    None: frozenset({Phase.STARTING}),
    Phase.STARTING: frozenset({Phase.MATCHING, Phase.ENDING}),
    Phase.MATCHING: frozenset({Phase.READY, Phase.ENDING}),
    Phase.READY: frozenset({Phase.ENDING}),
    Phase.ENDING: frozenset({None}),
}
JOINABLE = frozenset({Stage.STARTING, Stage.SPLIT, Stage.DRAINING})
MATCHING = frozenset({Phase.MATCHING, Phase.READY})


@dataclass(frozen=True, slots=True)
class SplitQueue:
    """A queue that is split; the target reads `deployed` in its stead. `visibility` is the original's."""

    queue_id: QueueId
    original: QueueName
    deployed: QueueName
    visibility: timedelta
    sns: bool = False
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def is_fifo(self) -> bool:
        """Say whether the order of its messages counts."""
        return is_fifo(self.original)


@dataclass(frozen=True, slots=True)
class Session:
    """One person's share; `queues` has its temporary queue for each original, also where it claims nothing.

    `since` is when its phase began. `config` is what it asked for, as text. Only messages of the originals in `stolen`
    can be its own: its other queues hold copies, or nothing. `effective_at` is when its filters count everywhere.
    """

    session_id: SessionId
    owner: str
    config: str
    started_at: datetime
    heartbeat_at: datetime
    phase: Phase
    since: datetime
    queues: Mapping[QueueName, QueueName]
    stolen: frozenset[QueueName] = frozenset()
    effective_at: datetime | None = None
    reason: str | None = None

    @property
    def has_matched(self) -> bool:
        """Say whether its filters have ever counted anywhere, so that its queues may hold messages."""
        return self.effective_at is not None

    def counts_for(self, original: QueueName, received_at: datetime) -> bool:
        """Say whether a message of a FIFO queue, first received then, is matched against this session."""
        if self.effective_at is None or received_at < self.effective_at:
            return False
        return self.phase in MATCHING or self.may_own(original)

    def may_own(self, original: QueueName) -> bool:
        """Say whether messages of a queue may have become this session's own."""
        return self.has_matched and original in self.stolen


@dataclass(frozen=True, slots=True)
class Split:
    """All that is kept of a split; what the registry said when it began stays true until it ends.

    `since` is when its stage began; `sessions` are in order of start; `was_split` says that messages were forwarded.
    """

    target: Target
    queues: tuple[SplitQueue, ...]
    sessions: tuple[Session, ...]
    stage: Stage
    since: datetime
    switch_timeout: timedelta
    drain_timeout: timedelta | None = None
    was_split: bool = False

    @property
    def live(self) -> tuple[Session, ...]:
        """Return the sessions that are not ending."""
        return tuple(session for session in self.sessions if session.phase is not Phase.ENDING)

    def session(self, session_id: SessionId) -> Session | None:
        """Return a session, or None."""
        return next((session for session in self.sessions if session.session_id == session_id), None)

    def routed(self, original: QueueName, *, received_at: datetime) -> tuple[Session, ...]:
        """Return the sessions that a message of a queue is matched against, in order of start.

        `received_at` is when the message was received for the first time. In a FIFO queue the answer stays the same
        however often a message comes back, or it could be given to two: a session counts for what was first received
        once its filters counted everywhere, and an ending one for all that is forwarded before forwarding pauses.
        """
        if not is_fifo(original):
            return tuple(one for one in self.sessions if one.phase in MATCHING)
        return tuple(one for one in self.sessions if one.counts_for(original, received_at))

    def heirs(self, session: Session, original: QueueName, *, received_at: datetime) -> tuple[Session, ...]:
        """Return the sessions that get what an ending one leaves, if they match it.

        Those that end later than it count in FIFO queues, as in `routed`; so returned messages never go in a circle.
        """
        routed = self.routed(original, received_at=received_at)
        return tuple(one for one in routed if one.phase is not Phase.ENDING or self.ends_before(session, one))

    def ends_before(self, session: Session, other: Session) -> bool:
        """Say of two sessions that end whether the first began to end before the other."""
        keys = [(one.since, self.sessions.index(one)) for one in (session, other)]
        return keys[0] < keys[1]

    def is_closing(self, original: QueueName) -> bool:
        """Say whether the forwarding of a FIFO queue is about to pause.

        From then on whoever forwards keeps account of what was begun and not finished, since a killed function leaves
        messages that may have been sent: they must be sent again to the same queue before anything else changes.
        """
        return is_fifo(original) and bool(self.closers(original))

    def closers(self, original: QueueName) -> tuple[Session, ...]:
        """Return the ending sessions for which the forwarding of a FIFO queue pauses."""
        used = [one for one in self.sessions if one.phase is Phase.ENDING and one.has_matched]
        return tuple(one for one in used if one.may_own(original) or not self.live)


def ended(split: Split, session_id: SessionId, *, reason: str, now: datetime) -> Split:
    """Return the record with a session that is to end; one that ends already, or is not there, changes nothing."""
    session = split.session(session_id)
    if session is None or session.phase is Phase.ENDING:
        return split
    return moved(split, replace(session, phase=Phase.ENDING, reason=reason), now=now)


def alive(split: Split, session_id: SessionId, *, now: datetime) -> Split:
    """Return the record after a session gave a sign of life."""
    sessions = (replace(one, heartbeat_at=now) if one.session_id == session_id else one for one in split.sessions)
    return replace(split, sessions=tuple(sessions))


def moved(split: Split, session: Session, *, now: datetime) -> Split:
    """Return the record with a session in another phase, from now on."""
    before = split.session(session.session_id)
    if before is None or session.phase not in PHASES[before.phase]:
        raise ValueError(f"session {session.session_id!r} cannot become {session.phase}")
    changed = replace(session, since=now)
    return replace(split, sessions=tuple(changed if one is before else one for one in split.sessions))
