"""Counters of what was posted to a connection."""

from datetime import timedelta

from signalbox.live.outbox.totals import LAG_BUCKETS, NO_TOTALS


def lags(*milliseconds: float) -> list[timedelta]:
    return [timedelta(milliseconds=one) for one in milliseconds]


def test_totals_add_up() -> None:
    totals = NO_TOTALS.plus(events=2, replies=1, size=100, lags=lags(3, 40))
    totals = totals.plus(events=1, replies=0, size=10, lags=lags(1_000_000))

    assert (totals.events, totals.replies, totals.size, totals.longest_ms) == (3, 1, 110, 1_000_000)
    assert (sum(totals.lags), totals.lags[LAG_BUCKETS - 1]) == (3, 1)


def test_the_median_is_rounded_up_to_a_power_of_two() -> None:
    assert NO_TOTALS.median_ms is None
    assert NO_TOTALS.plus(events=3, replies=0, size=0, lags=lags(-5, 0.2, 100)).median_ms == 1
    assert NO_TOTALS.plus(events=3, replies=0, size=0, lags=lags(3, 40, 50)).median_ms == 64
