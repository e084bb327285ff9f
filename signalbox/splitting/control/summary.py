"""Splits at a glance, from their records alone: who shares which queues, and how far it is."""

from collections.abc import Iterable

from signalbox.splitting.model.ports import StoredSplit, UnreadableSplit
from signalbox.splitting.model.split import Session, Split


def glance(splits: Iterable[StoredSplit | UnreadableSplit]) -> list[dict[str, object]]:
    """Return what is told of each split, in the order of the targets; one that cannot be read says why."""
    return sorted(map(_told, splits), key=lambda told: str(told["target"]))


def _told(one: StoredSplit | UnreadableSplit) -> dict[str, object]:
    if isinstance(one, UnreadableSplit):
        return {"target": one.target, "unreadable": one.reason}
    return _split(one.split)


def _split(split: Split) -> dict[str, object]:
    return {
        "target": str(split.target),
        "stage": split.stage.value,
        "since": split.since.isoformat(),
        "queues": [{"queue_id": queue.queue_id, "original": queue.original} for queue in split.queues],
        "sessions": [_session(session) for session in split.sessions],
    }


def _session(session: Session) -> dict[str, object]:
    return {
        "session": session.session_id,
        "owner": session.owner,
        "phase": session.phase.value,
        "started_at": session.started_at.isoformat(),
        "reason": session.reason,
    }
