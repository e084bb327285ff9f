"""Routes of splits that are read outside of the function `split`, and the budgets of their filters."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.clock import Clock
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.route import Route
from signalbox.splitting.model.filters import Compiler
from signalbox.splitting.model.split import SplitQueue
from signalbox.splitting.ports import StoredSplit


@dataclass(frozen=True, slots=True)
class RouteReader:
    """Reads the routes of queues; `settle` is how long a record may be used (`Timings.settle`)."""

    compiler: Compiler
    settle: timedelta
    clock: Clock

    def of(self, stored: StoredSplit, queue: SplitQueue, *, within: timedelta) -> Route:
        """Return the route of a queue by a record that was just read; compiling its filters takes at most `within`."""
        budget, now = self.budget(within), self.clock.now()
        return Route.of(stored, queue, budget=budget, read_at=now, settle=self.settle, known={})

    def budget(self, total: timedelta, *, is_fifo: bool = False) -> FilterBudget:
        """Return the budget of all filters for the time `total`."""
        return FilterBudget.of(self.compiler, total, is_fifo=is_fifo)
