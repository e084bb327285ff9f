"""The reconcile loop: runs that follow one another while a split changes, one chain for each target."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import chain

from signalbox.errors import EffectFailed, RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.chains import Chains
from signalbox.splitting.control.commands import Reconcile
from signalbox.splitting.control.effect_executor import EffectExecutor
from signalbox.splitting.control.observation import SplitObserver
from signalbox.splitting.control.ports import Store
from signalbox.splitting.control.presentation import session_annotation_names
from signalbox.splitting.control.problems import ProblemLog
from signalbox.splitting.control.reconcile import after_refusal, is_at_rest, next_actions
from signalbox.splitting.control.record_updates import RecordChanged, check_unchanged, save_action
from signalbox.splitting.control.registry_reader import RegistryReader
from signalbox.splitting.model import events
from signalbox.splitting.model.actions import (
    Action,
    Effect,
    ForgetSession,
    MoveSession,
    Record,
    ReleaseQueue,
    SwitchTarget,
)
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import Timings
from signalbox.splitting.model.split import Phase, Split, Stage, with_heartbeats
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Heartbeats, Splits, StoredSplit, UnreadableSplit
from signalbox.task_time import TaskTime

RUN_LENGTH = timedelta(seconds=8)
# No function that runs a reconcile runs longer than this.
RUN_LEASE = timedelta(seconds=60)
SOON, LATER = timedelta(seconds=1), timedelta(seconds=5)
# A failed session stays this long, because its client, which polls every few seconds, must receive the reason.
REASON_KEPT_FOR = timedelta(seconds=12)
STOPPED = "stopped"
# Lambda's detection of recursive loops is off for this function, so a chain ends itself: at least eight minutes of runs
# a second apart. The schedule begins another within a minute.
MAXIMUM_RUNS = 500

logger = logging.getLogger(__name__)


class PassProgress(Enum):
    """The outcome of one reconcile pass."""

    NONE = auto()
    SOME = auto()
    """Effects were executed or failed; the result is visible only later."""
    MORE = auto()
    """Another pass may find more actions at once."""


@dataclass(frozen=True, slots=True)
class ReconcileLoop:
    """Runs reconciles."""

    splits: Splits
    registries: RegistryReader
    chains: Chains
    reconciler: "Reconciler"

    def wake_all(self, time: TaskTime) -> int:
        """Start a chain for each split without one; return the number started. Unreadable splits are skipped."""
        begun = 0
        for found in chain.from_iterable(time.parts(self.splits.every())):
            if isinstance(found, UnreadableSplit):
                logger.error("the split of %s is skipped: %s", found.target, found.reason)
                continue
            begun += self.chains.wake(found.split.target)
        return begun

    def run(self, command: Reconcile) -> None:
        """Run a reconcile, and request the next run while the split changes."""
        target, now, locks = command.target, self._now(), self.chains.locks
        if not locks.acquire(target, holder=command.holder, now=now, until=now + RUN_LEASE):
            return
        while (progress := self._pass(target)) is PassProgress.MORE and self._now() - now < RUN_LENGTH:
            pass
        runs = command.runs_before + 1
        if runs == MAXIMUM_RUNS:
            self.reconciler.problems.record(target, f"its reconcile is not at rest after {runs} runs, which end here")
        locks.release(target, holder=command.holder)
        newest = self.splits.find(target)
        if runs < MAXIMUM_RUNS and newest and (progress is not PassProgress.NONE or not is_at_rest(newest.split)):
            delay = SOON if _is_waited_for(newest.split) else self._later(newest.split)
            self.chains.wake(target, delay=delay, runs_before=runs)

    def _later(self, split: Split) -> timedelta:
        """Return the delay when no client waits: a quarter of the time since the last change.

        Most changes follow one another at once. At most it is the interval of the samples that show an empty queue.
        """
        timings = self.reconciler.timings
        changed = max((split.since, *(session.since for session in split.sessions)))
        latest = min(LATER, max(SOON, timings.empty_for / timings.empty_samples))
        return min(latest, max(SOON, (self._now() - changed) / 4))

    def _pass(self, target: Target) -> PassProgress:
        stored = self.splits.find(target)
        if stored is None:
            return PassProgress.NONE
        try:
            return _Pass(self.reconciler, stored, self.registries.of_split(stored)).act()
        except RecordChanged:
            return PassProgress.MORE
        except EffectFailed as error:
            self.reconciler.problems.record(target, str(error))
            return PassProgress.SOME

    def _now(self) -> datetime:
        return self.chains.clock.now()


@dataclass(frozen=True, slots=True)
class Reconciler:
    """The ports and rules of a reconcile pass."""

    store: Store
    heartbeats: Heartbeats
    observer: SplitObserver
    executor: EffectExecutor
    timings: Timings
    record: Callable[[Sequence[HistoryEvent]], None]

    @property
    def problems(self) -> ProblemLog:
        """Return the problems of splits."""
        return self.observer.problems


@dataclass(slots=True)
class _Pass:
    """One reconcile pass: the record as read, with the changes of this pass."""

    uses: Reconciler
    seen: StoredSplit
    registry: Registry

    def act(self) -> PassProgress:
        """Execute the due actions."""
        progress = PassProgress.NONE
        for action in self._actions(self._now()):
            if isinstance(action, Record):
                self._save(action)
                progress = PassProgress.MORE
                continue
            # Effects were decided by this record, so a changed record is read again first.
            newest = self.uses.store.splits.find(self.seen.split.target)
            check_unchanged(newest.split if newest else None, self.seen)
            if isinstance(action, SwitchTarget) and self.seen.split.stage is Stage.SPLIT:
                target = self.seen.split.target
                self.uses.problems.record(target, f"{target} reads its original queues again; it is switched")
            try:
                is_more = self.uses.executor.execute(self.seen, self.registry, action)
            except RejectedError as error:
                return self._refused(action, str(error))
            progress = PassProgress.MORE if is_more or progress is PassProgress.MORE else PassProgress.SOME
        return progress

    def _now(self) -> datetime:
        return self.uses.problems.clock.now()

    def _actions(self, now: datetime) -> tuple[Action, ...]:
        split = self.seen.split
        try:
            observed = self.uses.observer.observe(split, self.registry, now=now)
        except RejectedError as error:
            self.uses.problems.record(split.target, str(error))
            # Only a split that never began is given up: a permission that is missing for a moment ends no session.
            is_starting = split.stage is Stage.STARTING
            return after_refusal(split, SwitchTarget(), reason=str(error)) if is_starting else ()
        current = with_heartbeats(split, self.uses.heartbeats.of(split))  # read last: what is observed takes time
        actions = next_actions(current, observed, now=now, timings=self.uses.timings)
        return tuple(action for action in actions if not self._is_too_early(action, now))

    def _is_too_early(self, action: Action, now: datetime) -> bool:
        session = self.seen.split.session(action.session_id) if isinstance(action, ForgetSession) else None
        return session is not None and session.reason != STOPPED and now - session.since < REASON_KEPT_FOR

    def _refused(self, effect: Effect, reason: str) -> PassProgress:
        self.uses.problems.record(self.seen.split.target, reason)
        moves = after_refusal(self.seen.split, effect, reason=reason)
        for move in moves:
            self._save(move)
        return PassProgress.MORE if moves else PassProgress.SOME

    def _save(self, action: Record) -> None:
        now, before = self._now(), self.seen.split
        saved = save_action(self.uses.store.splits, self.seen, action, now=now)
        self.seen = saved or self.seen
        if isinstance(action, ForgetSession):
            self._remove_annotations(before, action.session_id)
            self._record_event(before, action.session_id, "ended", now)
        elif isinstance(action, ReleaseQueue):
            text = f"session {action.session_id!r}: a consumer holds messages of {action.original!r}"
            self.uses.problems.record(before.target, f"{text}, which will be behind newer ones")
        elif isinstance(action, MoveSession) and action.phase is Phase.READY:
            self._record_event(self.seen.split, action.session_id, "ready", now)

    def _remove_annotations(self, split: Split, session_id: SessionId) -> None:
        names = [
            name for one in split.sessions if one.session_id == session_id for name in session_annotation_names(one)
        ]
        self.uses.store.annotations.remove(split.target, names)

    def _record_event(self, split: Split, session_id: SessionId, outcome: str, now: datetime) -> None:
        found = (one for one in split.sessions if one.session_id == session_id)
        self.uses.record([events.session(one, outcome, target=split.target, at=now) for one in found])


def _is_waited_for(split: Split) -> bool:
    """Return whether a client waits for its session, or the target for the end of a split without sessions."""
    is_over = split.stage is Stage.SPLIT and not split.sessions
    return is_over or any(session.phase in (Phase.STARTING, Phase.MATCHING) for session in split.live)
