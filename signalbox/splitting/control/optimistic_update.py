"""Changes of records when others change them too: read, change, write if it is still as it was, else again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from signalbox.errors import UnavailableError
from signalbox.splitting.model.actions import ForgetSplit, Record, recorded
from signalbox.splitting.model.ports import Splits, StoredSplit
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target

TRIES = 10


class RecordBusy(UnavailableError):
    """Raised when a record was changed by others each time that it was to be written."""


class RecordChanged(UnavailableError):
    """Raised when a record is not any more as it was when it was decided what is to be done."""


def changed(splits: Splits, target: Target, change: Callable[[Split], Split]) -> StoredSplit | None:
    """Change a target's record and return it; None when there is none. Raises `RecordBusy`."""
    for _ in range(TRIES):
        stored = splits.find(target)
        if stored is None:
            return None
        wanted = change(stored.split)
        saved = stored if wanted == stored.split else splits.save(wanted, replacing=stored)
        if saved is not None:
            return saved
    raise RecordBusy(f"the split of {target} is changed by many at the same time")


def written_down(splits: Splits, seen: StoredSplit, action: Record, *, now: datetime) -> StoredSplit | None:
    """Write down an action that was decided by a record as it was seen; return the new one, None when it is forgotten.

    Raises `RecordChanged` and `RecordBusy`.
    """

    def as_decided(split: Split) -> Split:
        check(split, seen)
        return recorded(split, action, now=now) or split

    if isinstance(action, ForgetSplit):
        recorded(seen.split, action, now=now)  # refuses what may not follow
        if not splits.forget(seen):
            raise RecordChanged(f"the split of {seen.split.target} was changed meanwhile")
        return None
    saved = changed(splits, seen.split.target, as_decided)
    if saved is None:
        raise RecordChanged(f"the split of {seen.split.target} is gone")
    return saved


def check(split: Split | None, seen: StoredSplit) -> None:
    """Raise `RecordChanged` unless a record is as it was seen; signs of life make no difference."""
    if split is None or _without_heartbeats(split) != _without_heartbeats(seen.split):
        raise RecordChanged(f"the split of {seen.split.target} was changed meanwhile")


def _without_heartbeats(split: Split) -> Split:
    return replace(split, sessions=tuple(replace(one, heartbeat_at=one.started_at) for one in split.sessions))
