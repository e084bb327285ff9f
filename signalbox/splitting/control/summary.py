"""A summary of all splits from their records: stage, queues and sessions."""

from collections.abc import Iterable

from signalbox.splitting.model.split import Split, SplitSession
from signalbox.splitting.ports import StoredSplit, UnreadableSplit


def summary(splits: Iterable[StoredSplit | UnreadableSplit]) -> list[dict[str, object]]:
    """Return a document for each split, ordered by target; an unreadable one contains the reason."""
    return sorted(map(_document, splits), key=lambda document: str(document["target"]))


def _document(one: StoredSplit | UnreadableSplit) -> dict[str, object]:
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


def _session(session: SplitSession) -> dict[str, object]:
    return {
        "session": session.session_id,
        "owner": session.owner,
        "phase": session.phase.value,
        "started_at": session.started_at.isoformat(),
        "reason": session.reason,
    }
