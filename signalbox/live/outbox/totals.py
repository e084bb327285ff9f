"""Counters of the posts to a connection since it opened."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate

LAG_BUCKETS = 20  # of doubling width; the last but one ends at four minutes


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of events, replies and bytes, and a histogram of delays with buckets below 1, 2, 4, … milliseconds.

    `noted_at` is when the totals were saved. Up to a minute of counts is lost when a writer crashes.
    """

    events: int = 0
    replies: int = 0
    size: int = 0
    lags: tuple[int, ...] = (0,) * LAG_BUCKETS
    longest_ms: int = 0
    noted_at: datetime | None = None

    def plus(self, *, events: int, replies: int, size: int, lags: Iterable[timedelta]) -> "Totals":
        """Return the totals with more posted messages added."""
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
        """Return an upper bound of the median delay, at most twice the median; None without events."""
        half = sum(self.lags) / 2
        return next((2**bucket for bucket, count in enumerate(accumulate(self.lags)) if half and count >= half), None)


NO_TOTALS = Totals()
