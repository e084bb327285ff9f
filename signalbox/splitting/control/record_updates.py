"""Optimistic updates of a split's record, and the heartbeats, which are stored outside it."""

from collections.abc import Callable
from datetime import datetime

from signalbox.errors import UnavailableError
from signalbox.optimistic_update import optimistic_update
from signalbox.splitting.model.actions import ForgetSplit, Record, apply_change
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.split import Split, with_heartbeats
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Heartbeats, Splits, StoredSplit

TRIES = 10


class RecordBusy(UnavailableError):
    """Raised when other writers changed a record at every attempt to write it."""


class RecordChanged(UnavailableError):
    """Raised when a record changed after an action was decided by it."""


def changed(splits: Splits, target: Target, change: Callable[[Split], Split]) -> StoredSplit | None:
    """Change a target's record and return it, or None if there is no record. Raises `RecordBusy`."""

    def attempt() -> tuple[StoredSplit | None] | None:
        stored = splits.find(target)
        if stored is None:
            return (None,)
        wanted = change(stored.split)
        saved = stored if wanted == stored.split else splits.save(wanted, replacing=stored)
        return None if saved is None else (saved,)

    done = optimistic_update(attempt, tries=TRIES)
    if done is None:
        raise RecordBusy(f"the split of {target} is being changed by several writers")
    return done[0]


def save_action(splits: Splits, seen: StoredSplit, action: Record, *, now: datetime) -> StoredSplit | None:
    """Save an action that was decided by the record `seen`; return the new record, None after `ForgetSplit`.

    Raises `RecordChanged` and `RecordBusy`.
    """

    def as_decided(split: Split) -> Split:
        check_unchanged(split, seen)
        return apply_change(split, action, now=now) or split

    if isinstance(action, ForgetSplit):
        apply_change(seen.split, action, now=now)  # raises for a transition that is not allowed
        if not splits.forget(seen):
            raise RecordChanged(f"the split of {seen.split.target} was changed by another writer")
        return None
    saved = changed(splits, seen.split.target, as_decided)
    if saved is None:
        raise RecordChanged(f"the split of {seen.split.target} is gone")
    return saved


def check_unchanged(split: Split | None, seen: StoredSplit) -> None:
    """Raise `RecordChanged` unless a record equals `seen`."""
    if split != seen.split:
        raise RecordChanged(f"the split of {seen.split.target} was changed by another writer")


def renewed(heartbeats: Heartbeats, split: Split, session_id: SessionId, *, now: datetime) -> Split:
    """Record a heartbeat of a session, which does not revive an ending one, and return the split with it."""
    if split.session(session_id) is not None:
        heartbeats.record(split.target, session_id, now=now)
    return with_heartbeats(split, {session_id: now})
