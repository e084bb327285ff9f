"""Chains of reconcile runs, one for each target."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from signalbox.clock import Clock
from signalbox.splitting.control.commands import Reconcile, holder_of
from signalbox.splitting.control.ports import ControlQueue
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Locks

# How late the next run of a chain may be before another chain may begin.
GRACE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Chains:
    """Requests runs. A chain keeps its target's lock between runs, so a target never has two chains."""

    locks: Locks
    control_queue: ControlQueue
    random_parts: Iterator[str]
    clock: Clock

    def wake(self, target: Target, *, delay: timedelta = timedelta(0), runs_before: int = 0) -> bool:
        """Start a chain of runs for a target unless one exists, or continue it; return whether a run was requested.

        Call this after the record was written: a chain that ends reads the record again.
        """
        now, holder = self.clock.now(), holder_of(next(self.random_parts), runs_before=runs_before)
        is_ours = self.locks.acquire(target, holder=holder, now=now, until=now + delay + GRACE)
        if is_ours:
            self.control_queue.ask(Reconcile(target, holder), delay=delay)
        return is_ours
