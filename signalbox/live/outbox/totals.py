"""What was posted to a connection since it began, in numbers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate

LAG_BUCKETS = 20  # each twice as wide as the one before it; the last but one ends at four minutes


@dataclass(frozen=True, slots=True)
class Totals:
    """Events, their bytes, and how long they took: how many took less than 1, 2, 4, … milliseconds, and the longest.

    `noted_at` is when they were written down; a minute's may be lost with a writer.
    """

    events: int = 0
    replies: int = 0
    size: int = 0
    lags: tuple[int, ...] = (0,) * LAG_BUCKETS
    longest_ms: int = 0
    noted_at: datetime | None = None

    def plus(self, *, events: int, replies: int, size: int, lags: Iterable[timedelta]) -> "Totals":
        """Return the totals after some more was posted."""
        counts, longest = list(self.lags), self.longest_ms
        for lag in lags:
            milliseconds = max(round(lag.total_seconds() * 1000), 0)
            counts[min(milliseconds.bit_length(), LAG_BUCKETS - 1)] += 1
            longest = max(longest, milliseconds)
        return replace(
            self,
            events=self.events + events,
            replies=self.replies + replies,
            size=self.size + size,
            lags=tuple(counts),
            longest_ms=longest,
        )

    @property
    def median_ms(self) -> int | None:
        """Return a time that half of the events did not take, at most twice as long as the shortest such; or None."""
        half = sum(self.lags) / 2
        return next((2**place for place, count in enumerate(accumulate(self.lags)) if half and count >= half), None)


NO_TOTALS = Totals()
