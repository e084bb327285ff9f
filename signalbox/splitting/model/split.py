"""The record of a split: its target, queues and sessions, and the tables of allowed transitions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate

from signalbox.queues import QueueName, is_fifo
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import Target


class Stage(StrEnum):
    """The stages of a split; `STAGES` lists the allowed transitions."""

    STARTING = "starting"
    """The queues are created and the target is switched to its temporary queues."""
    SPLIT = "split"
    """Messages are forwarded."""
    DRAINING = "draining"
    """No session remains; the target consumes the rest of its temporary queues."""
    RESTORING = "restoring"
    """The target is switched back."""
    CLEANING = "cleaning"
    """The target reads the originals again; remaining messages are returned and the queues deleted."""


class Phase(StrEnum):
    """The phases of a session; `PHASES` lists the allowed transitions."""

    STARTING = "starting"
    """Its queues are created."""
    MATCHING = "matching"
    """Its filters apply, but not every queue is forwarded yet."""
    READY = "ready"
    """It receives its messages."""
    ENDING = "ending"
    """Its unconsumed messages are returned, and its queues are deleted."""


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
REASON_BYTES = 500  # of a stored reason or note, which may quote a filter, a tag or an error of any length


@dataclass(frozen=True, slots=True)
class SplitQueue:
    """A split queue; the target reads `deployed` instead of `original`, whose visibility timeout is `visibility`.

    With `s3_event`, its messages are S3 event notifications. With `is_kept`, what passes it is kept
    (`signalbox.kept.settings`).
    """

    queue_id: QueueId
    original: QueueName
    deployed: QueueName
    visibility: timedelta
    sns: bool = False
    tags: tuple[tuple[str, str], ...] = ()
    s3_event: bool = False
    is_kept: bool = False

    @property
    def is_fifo(self) -> bool:
        """Return whether the queue is a FIFO queue."""
        return is_fifo(self.original)


@dataclass(frozen=True, slots=True)
class Replay:
    """The kept messages that a session gets before all others: those kept at or after `since` and before `until`.

    `positions` has the last key that was read of each original, and `finished_at` is when the last message was read.
    `sent` and `skipped` count the messages that the session's filter matched: those that were sent to its queue, and
    those that were not, since the attribute that marks a replay would make them too long.
    """

    since: datetime
    until: datetime
    positions: Mapping[QueueName, str]
    sent: int = 0
    skipped: int = 0
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SplitSession:
    """A user's session on a split; `queues` maps each original to the session's temporary queue.

    Every original has one, even if the session claims nothing of it. `since` is when the phase began. `config` is the
    requested configuration as JSON. In a record, `heartbeat_at` is the start: `Heartbeats` has those since then. The
    session can own messages only of the originals in `stolen`; its other queues hold copies or nothing. Of those in
    `exclusive` no other session can own any; of those in `mirrored` it gets copies. `effective_at` is when its filters
    apply in every function. Its filters apply to no message before its `replay` is finished. `released` are the FIFO
    queues whose forwarding goes on although the session, which has ended, has messages that a consumer holds.
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
    exclusive: frozenset[QueueName] = frozenset()
    mirrored: frozenset[QueueName] = frozenset()
    replay: Replay | None = None
    released: frozenset[QueueName] = frozenset()

    @property
    def is_replaying(self) -> bool:
        """Return whether kept messages are still to be sent to the session."""
        return self.replay is not None and self.replay.finished_at is None

    @property
    def has_matched(self) -> bool:
        """Return whether the filters have ever applied, so that the session's queues may hold messages."""
        return self.effective_at is not None

    def counts_for(self, original: QueueName, received_at: datetime) -> bool:
        """Return whether a FIFO message first received at `received_at` is matched against this session."""
        if self.effective_at is None or received_at < self.effective_at:
            return False
        return self.phase in MATCHING or (self.may_own(original) and original not in self.released)

    def gets_copies(self, original: QueueName) -> bool:
        """Return whether the session gets copies of a queue's messages: it mirrors the queue, or replays kept ones."""
        return self.replay is not None or original not in self.stolen

    def may_own(self, original: QueueName) -> bool:
        """Return whether the session may own messages of a queue."""
        return self.has_matched and original in self.stolen


@dataclass(frozen=True, slots=True)
class Split:
    """The record of a split; the settings of its registry stay fixed until the split ends.

    `since` is when the stage began. `sessions` are in order of start. `was_split` is true once messages may have been
    forwarded.
    """

    target: Target
    queues: tuple[SplitQueue, ...]
    sessions: tuple[SplitSession, ...]
    stage: Stage
    since: datetime
    switch_timeout: timedelta
    drain_timeout: timedelta | None = None
    was_split: bool = False

    @property
    def live(self) -> tuple[SplitSession, ...]:
        """Return the sessions that are not ending."""
        return tuple(session for session in self.sessions if session.phase is not Phase.ENDING)

    def session(self, session_id: SessionId) -> SplitSession | None:
        """Return a session, or None."""
        return next((session for session in self.sessions if session.session_id == session_id), None)

    def routed(self, original: QueueName, *, received_at: datetime) -> tuple[SplitSession, ...]:
        """Return the sessions that a message of a queue is matched against, in order of start.

        `received_at` is when the message was first received. For a FIFO queue the result is the same at every
        redelivery, because a message could otherwise be sent to two sessions: a session counts for messages first
        received after its filters applied everywhere, and an ending session for everything that is forwarded before
        forwarding pauses.
        """
        if not is_fifo(original):
            return tuple(one for one in self.sessions if one.phase in MATCHING)
        return tuple(one for one in self.sessions if one.counts_for(original, received_at))

    def heirs(self, session: SplitSession, original: QueueName, *, received_at: datetime) -> tuple[SplitSession, ...]:
        """Return the sessions that can receive the unconsumed messages of an ending session, in order of start.

        In FIFO queues, sessions that end later count as well (see `routed`), so returned messages never go in a circle.
        """
        routed = self.routed(original, received_at=received_at)
        return tuple(one for one in routed if one.phase is not Phase.ENDING or self.ends_before(session, one))

    def ends_before(self, session: SplitSession, other: SplitSession) -> bool:
        """Return whether the ending session `session` began to end before `other`."""
        keys = [(one.since, self.sessions.index(one)) for one in (session, other)]
        return keys[0] < keys[1]

    def is_closing(self, original: QueueName) -> bool:
        """Return whether the forwarding of a FIFO queue is about to pause.

        From then on forwarding calls record their messages. A killed call leaves messages that may have been sent;
        they must be sent again to the same queue before anything else changes.
        """
        return is_fifo(original) and bool(self.closers(original))

    def closing_since(self, original: QueueName) -> datetime:
        """Return from when on forwarding calls of a closing queue record their messages."""
        owners = [one.since for one in self.closers(original) if one.may_own(original)]
        return min(owners) if owners else max(one.since for one in self.sessions)

    def closers(self, original: QueueName) -> tuple[SplitSession, ...]:
        """Return the ending sessions for which the forwarding of a FIFO queue pauses."""
        used = [one for one in self.sessions if one.phase is Phase.ENDING and one.has_matched]
        awaited = [one for one in used if original not in one.released]
        return tuple(one for one in awaited if one.may_own(original) or not self.live)


def ended(split: Split, session_id: SessionId, *, reason: str, now: datetime) -> Split:
    """Return the record with a session in phase `ENDING`; unchanged if it is absent or already ending."""
    session = split.session(session_id)
    if session is None or session.phase is Phase.ENDING:
        return split
    return moved(split, replace(session, phase=Phase.ENDING, reason=shortened(reason)), now=now)


def shortened(text: str, most: int = REASON_BYTES) -> str:
    """Return the start of a text that takes at most `most` bytes as JSON."""
    if len(json.dumps(text)) - 2 <= most:
        return text
    sizes = accumulate(len(json.dumps(character)) - 2 for character in text[:most])
    return "".join(character for character, size in zip(text, sizes, strict=False) if size <= most)


def with_heartbeats(split: Split, heartbeats: Mapping[SessionId, datetime]) -> Split:
    """Return the split with the newest heartbeats of its sessions; one from before a session's start is of another."""
    sessions = (
        replace(one, heartbeat_at=max(one.heartbeat_at, heartbeats.get(one.session_id, one.heartbeat_at)))
        for one in split.sessions
    )
    return replace(split, sessions=tuple(sessions))


def with_replay(split: Split, session_id: SessionId, replay: Replay) -> Split:
    """Return the record with the progress of a session's replay; unchanged if the session has left its first phase."""
    sessions = (
        replace(one, replay=replay) if one.session_id == session_id and one.phase is Phase.STARTING else one
        for one in split.sessions
    )
    return replace(split, sessions=tuple(sessions))


def with_kept(split: Split, original: QueueName, *, is_kept: bool) -> Split:
    """Return the record with the mark whether a queue's messages are kept."""
    queues = (replace(one, is_kept=is_kept) if one.original == original else one for one in split.queues)
    return replace(split, queues=tuple(queues))


def moved(split: Split, session: SplitSession, *, now: datetime) -> Split:
    """Return the record with a session in its next phase, beginning `now`. Raises `ValueError`."""
    before = split.session(session.session_id)
    if before is None or session.phase not in PHASES[before.phase]:
        raise ValueError(f"session {session.session_id!r} cannot become {session.phase}")
    return with_session(split, replace(session, since=now))


def with_session(split: Split, session: SplitSession) -> Split:
    """Return the record with a changed session."""
    sessions = (session if one.session_id == session.session_id else one for one in split.sessions)
    return replace(split, sessions=tuple(sessions))
