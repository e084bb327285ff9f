"""What can be done to a split and its world; each may be done twice, and by a killed function half."""

from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.queues import QueueName
from signalbox.splitting.forwarding.matching import SessionId
from signalbox.splitting.model.split import STAGES, Phase, Split, Stage, ended, moved


@dataclass(frozen=True, slots=True)
class CreateQueue:
    """Make a temporary queue like `original`; for the deployed consumer when there is no session."""

    name: QueueName
    original: QueueName
    session_id: SessionId | None = None


@dataclass(frozen=True, slots=True)
class SwitchTarget:
    """Let the target read its temporary queues, all of them."""


@dataclass(frozen=True, slots=True)
class SwitchTargetBack:
    """Let the target read the originals, as before the split."""


@dataclass(frozen=True, slots=True)
class StartForwarding:
    """Let messages of a queue be forwarded."""

    original: QueueName


@dataclass(frozen=True, slots=True)
class StopForwarding:
    """Let messages of a queue stay where they are."""

    original: QueueName


@dataclass(frozen=True, slots=True)
class RemoveForwarding:
    """Take away what forwards messages of a queue; it has stopped before."""

    original: QueueName


@dataclass(frozen=True, slots=True)
class ReturnMessages:
    """Take the messages out of a temporary queue, in order.

    A session's are matched again, against the sessions that are left, and go straight where they belong. With
    `to_original` they go back into the original.
    """

    name: QueueName
    original: QueueName
    to_original: bool = False


@dataclass(frozen=True, slots=True)
class DeleteQueue:
    """Delete a temporary queue that is empty, or holds only copies."""

    name: QueueName


@dataclass(frozen=True, slots=True)
class MoveSession:
    """Write down that a session is in another phase; with `MATCHING`, from when on its filters count everywhere."""

    session_id: SessionId
    phase: Phase
    reason: str | None = None
    effective_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ForgetSession:
    """Write down that a session has ended."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class MoveSplit:
    """Write down that the split is in another stage."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class ForgetSplit:
    """Write down that the split has ended, and the world is as before."""


Record = MoveSession | ForgetSession | MoveSplit | ForgetSplit
Effect = (
    CreateQueue
    | SwitchTarget
    | SwitchTargetBack
    | StartForwarding
    | StopForwarding
    | RemoveForwarding
    | ReturnMessages
    | DeleteQueue
)
Action = Record | Effect


def recorded(split: Split, action: Record, *, now: datetime) -> Split | None:
    """Return the record after a change to it; None when the split has ended."""
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
    if action.phase is Phase.ENDING:
        return ended(split, action.session_id, reason=action.reason or "", now=now)
    effective_at = action.effective_at or session.effective_at
    return moved(split, replace(session, phase=action.phase, effective_at=effective_at), now=now)


def _check(split: Split, stage: Stage | None) -> None:
    if stage not in STAGES[split.stage]:
        raise ValueError(f"a split that is {split.stage} cannot become {stage}")
