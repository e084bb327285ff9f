"""The newest activity, kept for a time, since each read of CloudWatch is billed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.activity.summary import Activity


@dataclass(slots=True)
class RecentActivity:
    """A read of the activity, repeated when it is older than `keep_for`.

    `options` are those of the commands for the stage.
    """

    read: Callable[[datetime], Sequence[Activity]]
    keep_for: timedelta
    options: str = ""
    _known: tuple[datetime, Sequence[Activity]] | None = field(default=None, init=False)

    def at(self, now: datetime) -> tuple[datetime, Sequence[Activity]]:
        """Return the time of the read and the activity of every capability."""
        if self._known is None or now - self._known[0] >= self.keep_for:
            self._known = (now, self.read(now))
        return self._known
