"""Back-off without waiting."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from signalbox.backoff import Backoff


@dataclass
class SteppedClock:
    """A clock that only sleeping advances; `slept` are the pauses in seconds."""

    moment: datetime = datetime(2026, 11, 22, tzinfo=UTC)
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.moment += timedelta(seconds=seconds)


AT_ONCE = Backoff(SteppedClock(), lambda: 0.0)
