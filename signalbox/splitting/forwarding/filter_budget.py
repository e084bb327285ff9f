"""The budget of filters: the time that the filters of all sessions may use in one call of a function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from signalbox.splitting.model.filter_input import FilterInput
from signalbox.splitting.model.filters import Compiler, Filter, FilterStopped, FilterUse, Verdict

MESSAGE_SECONDS = 1.0
"""The time of a session's filter for one message of a standard queue."""
BATCH_SIZE = 10
SHARE = 0.2
"""The share of one session in a budget."""
NEXT = 0.1
"""The share of the rest of a budget that the next evaluation may use, so that it is never used up."""

Result = TypeVar("Result")


@dataclass(slots=True)
class FilterBudget:
    """The remaining time for all filters, and the time that each session has used of its share.

    Every message of a batch is decided, whatever the filters do. In a standard queue a filter that was stopped is not
    asked again in the same call. In a FIFO queue it is: a message that a killed call had sent to a session must be sent
    to it again. So there the share is divided among the messages of a batch, and the verdict on one message does not
    depend on the others. `on_stopped` is called with the session and the reason, at once and once for each session.
    """

    compiler: Compiler
    rest_seconds: float
    share_seconds: float
    message_seconds: float
    is_fifo: bool
    on_stopped: Callable[[str, str], None] = lambda _session, _reason: None
    stopped: set[str] = field(default_factory=set)
    used: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, compiler: Compiler, total: timedelta, *, is_fifo: bool = False) -> "FilterBudget":
        """Return the budget of a call in which all filters together may take the time `total`."""
        seconds = total.total_seconds()
        share = seconds * SHARE
        return cls(compiler, seconds, share, share / BATCH_SIZE if is_fifo else MESSAGE_SECONDS, is_fifo)

    def verdict(self, session: str, filter_: Filter, filter_input: FilterInput) -> Verdict:
        """Return the verdict of a session's filter. Raises `FilterStopped`."""
        try:
            return self.within(session, lambda: filter_.verdict(filter_input), limit=self.message_seconds)
        except FilterStopped as error:
            if session not in self.stopped:
                self.stopped.add(session)
                self.on_stopped(session, str(error))
            raise

    def within(self, session: str, work: Callable[[], Result], *, limit: float = MESSAGE_SECONDS) -> Result:
        """Return the result of compilations or evaluations for a session, which may use at most `limit` seconds."""
        used = 0.0 if self.is_fifo else self.used.get(session, 0.0)
        use = FilterUse(min(limit, self.share_seconds - used, self.rest_seconds * NEXT))
        before = self.compiler.begin(use)
        try:
            return work()
        finally:
            self.compiler.begin(before)
            if use.elapsed_seconds:
                self.used[session] = self.used.get(session, 0.0) + use.seconds
                self.rest_seconds -= use.elapsed_seconds
