"""Reconcile actions: effects on AWS and changes of a split's record; all of them are idempotent."""

from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.queues import QueueName
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import QueueUse
from signalbox.splitting.model.split import STAGES, Phase, Split, SplitSession, Stage, ended, moved, with_session


@dataclass(frozen=True, slots=True)
class CreateQueue:
    """Create a temporary queue like `original`; without a session it is the deployed consumer's."""

    name: QueueName
    original: QueueName
    session_id: SessionId | None = None


@dataclass(frozen=True, slots=True)
class SwitchTarget:
    """Switch the target to all of its temporary queues."""


@dataclass(frozen=True, slots=True)
class SwitchTargetBack:
    """Switch the target back to the original queues."""


@dataclass(frozen=True, slots=True)
class StartForwarding:
    """Start forwarding the messages of a queue."""

    original: QueueName


@dataclass(frozen=True, slots=True)
class StopForwarding:
    """Stop forwarding the messages of a queue; they stay in the original."""

    original: QueueName


@dataclass(frozen=True, slots=True)
class RemoveForwarding:
    """Remove the forwarder of a queue; it has been stopped before."""

    original: QueueName


@dataclass(frozen=True, slots=True)
class ReplayKept:
    """Send some kept messages to the queues of a session whose filters do not apply yet."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class ReturnMessages:
    """Return the messages of a temporary queue, in order.

    Messages of a session are matched again against the remaining sessions and are sent straight to their new owners.
    With `to_original` they are sent to the original queue.
    """

    name: QueueName
    original: QueueName
    to_original: bool = False


@dataclass(frozen=True, slots=True)
class CloseQueue:
    """Close an ending session's queue for later calls, unless a call has used it since its use was read."""

    name: QueueName
    session_id: SessionId
    seen: QueueUse


@dataclass(frozen=True, slots=True)
class DeleteTemporaryQueue:
    """Delete a temporary queue that is empty or holds only copies."""

    name: QueueName


@dataclass(frozen=True, slots=True)
class MoveSession:
    """Record a session's next phase; for `MATCHING`, `effective_at` is when its filters apply in every function."""

    session_id: SessionId
    phase: Phase
    reason: str | None = None
    effective_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReleaseQueue:
    """Record that a queue's forwarding does not wait any more for what a consumer of an ended session holds."""

    session_id: SessionId
    original: QueueName


@dataclass(frozen=True, slots=True)
class EndClaims:
    """Record that the released queues of an ended session hold no messages any more, so that forwarding may pause."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class ForgetSession:
    """Remove an ended session from the record."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class MoveSplit:
    """Record the split's next stage."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class ForgetSplit:
    """Delete the record of a split that has been undone."""


Record = MoveSession | ReleaseQueue | EndClaims | ForgetSession | MoveSplit | ForgetSplit
Effect = (
    CreateQueue
    | SwitchTarget
    | SwitchTargetBack
    | StartForwarding
    | StopForwarding
    | RemoveForwarding
    | ReplayKept
    | ReturnMessages
    | CloseQueue
    | DeleteTemporaryQueue
)
Action = Record | Effect


def apply_change(split: Split, action: Record, *, now: datetime) -> Split | None:
    """Return the record after a change, or None after `ForgetSplit`.

    Raises `ValueError` for a transition that `STAGES` or `PHASES` does not allow.
    """
    if isinstance(action, ForgetSplit):
        _check(split, None)
        return None
    if isinstance(action, MoveSplit):
        _check(split, action.stage)
        return replace(split, stage=action.stage, since=now, was_split=split.was_split or action.stage is Stage.SPLIT)
    if isinstance(action, ForgetSession):
        return replace(split, sessions=tuple(one for one in split.sessions if one.session_id != action.session_id))
    session = split.session(action.session_id)
    if session is None:
        raise ValueError(f"there is no session {action.session_id!r}")
    return _with_change(split, session, action, now=now)


def _with_change(
    split: Split, session: SplitSession, action: MoveSession | ReleaseQueue | EndClaims, *, now: datetime
) -> Split:
    if isinstance(action, ReleaseQueue):
        return with_session(split, replace(session, released=session.released | {action.original}))
    if isinstance(action, EndClaims):
        left = session.stolen - session.released
        return with_session(split, replace(session, stolen=left, released=frozenset(), since=now))
    if action.phase is Phase.ENDING:
        return ended(split, action.session_id, reason=action.reason or "", now=now)
    effective_at = action.effective_at or session.effective_at
    return moved(split, replace(session, phase=action.phase, effective_at=effective_at), now=now)


def _check(split: Split, stage: Stage | None) -> None:
    if stage not in STAGES[split.stage]:
        raise ValueError(f"a split that is {split.stage} cannot become {stage}")
