"""Moving splits forward: rounds that follow one another while something is under way, one chain for each target."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from signalbox.errors import EffectFailed, RejectedError
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.commands import Reconcile
from signalbox.splitting.control.effect_executor import Effects
from signalbox.splitting.control.observation import observed
from signalbox.splitting.control.optimistic_update import RecordChanged, check, written_down
from signalbox.splitting.control.presentation import session_notes
from signalbox.splitting.control.problems import note_trouble
from signalbox.splitting.control.reconcile import after_refusal, is_at_rest, next_actions
from signalbox.splitting.forwarding.matching import SessionId
from signalbox.splitting.model import events
from signalbox.splitting.model.actions import (
    Action,
    Effect,
    ForgetSession,
    ForgetSplit,
    MoveSession,
    MoveSplit,
    Record,
    SwitchTarget,
)
from signalbox.splitting.model.control_ports import ControlPorts
from signalbox.splitting.model.ports import StoredSplit, UnreadableSplit
from signalbox.splitting.model.split import Phase, Session, Split, Stage
from signalbox.splitting.model.target import Target

ROUND_LENGTH = timedelta(seconds=8)
# No function that carries out rounds lives longer than this.
ROUND_LEASE = timedelta(seconds=60)
# How late the next round of a chain may be before another chain may begin.
GRACE = timedelta(seconds=15)
SOON, LATER = timedelta(seconds=1), timedelta(seconds=5)
# Whoever waits for a session that failed hears why: it asks every few seconds.
REASON_KEPT_FOR = timedelta(seconds=12)
STOPPED = "stopped"

logger = logging.getLogger(__name__)


class Progress(Enum):
    """What a look at a split led to."""

    NONE = auto()
    SOME = auto()
    """What was done, or failed, can be seen later only."""
    MORE = auto()
    """Another look may find more to do at once."""


@dataclass(frozen=True, slots=True)
class RoundDesk:
    """Carries out rounds. A chain keeps the lock of its target between its rounds, so there is never a second one."""

    ports: ControlPorts

    def wake(self, target: Target, *, delay: timedelta = timedelta(0)) -> bool:
        """Begin a chain of rounds for a target unless there is one already; say whether one was begun.

        To be called after the record was written: a chain that ends looks at the record once more.
        """
        now, holder = self.ports.now(), next(self.ports.fresh)
        is_ours = self.ports.store.locks.take(target, holder=holder, now=now, until=now + delay + GRACE)
        if is_ours:
            self.ports.control_queue.ask(Reconcile(target, holder), delay=delay)
        return is_ours

    def wake_all(self) -> int:
        """Begin a chain for each split that has none; return how many were begun. What cannot be read is let alone."""
        begun = 0
        for found in self.ports.store.splits.every():
            if isinstance(found, UnreadableSplit):
                logger.error("the split of %s is let alone: %s", found.target, found.reason)
                continue
            begun += self.wake(found.split.target)
        return begun

    def run(self, command: Reconcile) -> None:
        """Do a round, and ask for the next one while something is under way."""
        target, now, locks = command.target, self.ports.now(), self.ports.store.locks
        if not locks.take(target, holder=command.holder, now=now, until=now + ROUND_LEASE):
            return
        while (progress := self._look(target)) is Progress.MORE and self.ports.now() - now < ROUND_LENGTH:
            pass
        locks.leave(target, holder=command.holder)
        newest = self.ports.store.splits.find(target)
        if newest is not None and (progress is not Progress.NONE or not is_at_rest(newest.split)):
            self.wake(target, delay=SOON if _is_waited_for(newest.split) else self._later())

    def _later(self) -> timedelta:
        """Return the pause where nobody waits: no longer than between the samples that show a queue to be empty."""
        patience = self.ports.patience
        return min(LATER, max(SOON, patience.empty_for / patience.empty_samples))

    def _look(self, target: Target) -> Progress:
        stored = self.ports.store.splits.find(target)
        if stored is None:
            return Progress.NONE
        try:
            return _Look(self.ports, stored, self.ports.registry_of(stored)).act()
        except RecordChanged:
            return Progress.MORE
        except EffectFailed as error:
            note_trouble(self.ports, target, str(error))
            return Progress.SOME


@dataclass(slots=True)
class _Look:
    """One look at a split: the record as it was read, and as this look has changed it since."""

    ports: ControlPorts
    seen: StoredSplit
    registry: Registry

    def act(self) -> Progress:
        """Do what is to be done now."""
        progress = Progress.NONE
        for action in self._actions(self.ports.now()):
            if isinstance(action, MoveSession | ForgetSession | MoveSplit | ForgetSplit):
                self._write_down(action)
                progress = Progress.MORE
                continue
            # What else is done now was decided by this record, so a changed one is to be looked at first.
            newest = self.ports.store.splits.find(self.seen.split.target)
            check(newest.split if newest else None, self.seen)
            try:
                is_more = Effects(self.ports, self.seen, self.registry).carry_out(action)
            except RejectedError as error:
                return self._refused(action, str(error))
            progress = Progress.MORE if is_more or progress is Progress.MORE else Progress.SOME
        return progress

    def _actions(self, now: datetime) -> tuple[Action, ...]:
        split = self.seen.split
        try:
            world = observed(self.ports, split, self.registry, now=now)
        except RejectedError as error:
            note_trouble(self.ports, split.target, str(error))
            # Only what never began is given up: a permission that somebody takes away for a moment ends no session.
            is_starting = split.stage is Stage.STARTING
            return after_refusal(split, SwitchTarget(), reason=str(error)) if is_starting else ()
        actions = next_actions(split, world, now=now, patience=self.ports.patience)
        return tuple(action for action in actions if not self._is_too_early(action, now))

    def _is_too_early(self, action: Action, now: datetime) -> bool:
        session = self.seen.split.session(action.session_id) if isinstance(action, ForgetSession) else None
        return session is not None and session.reason != STOPPED and now - session.since < REASON_KEPT_FOR

    def _refused(self, effect: Effect, reason: str) -> Progress:
        note_trouble(self.ports, self.seen.split.target, reason)
        moves = after_refusal(self.seen.split, effect, reason=reason)
        for move in moves:
            self._write_down(move)
        return Progress.MORE if moves else Progress.SOME

    def _write_down(self, action: Record) -> None:
        now, before = self.ports.now(), self.seen.split
        saved = written_down(self.ports.store.splits, self.seen, action, now=now)
        self.seen = saved or self.seen
        if isinstance(action, ForgetSession):
            self._forget_notes(before, action.session_id)
            self._tell(before, action.session_id, "ended", now)
        elif isinstance(action, MoveSession) and action.phase is Phase.READY:
            self._tell(self.seen.split, action.session_id, "ready", now)

    def _forget_notes(self, split: Split, session_id: SessionId) -> None:
        names = [name for one in split.sessions if one.session_id == session_id for name in session_notes(one)]
        self.ports.store.notes.remove(split.target, names)

    def _tell(self, split: Split, session_id: SessionId, outcome: str, now: datetime) -> None:
        told = (one for one in split.sessions if one.session_id == session_id)
        self.ports.record([events.session(one, outcome, target=split.target, at=now) for one in told])


def _is_waited_for(split: Split) -> bool:
    return any(_is_starting(session) for session in split.live)


def _is_starting(session: Session) -> bool:
    return session.phase in (Phase.STARTING, Phase.MATCHING)
