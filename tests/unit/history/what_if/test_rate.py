"""The rate of past messages and its chart."""

from datetime import UTC, datetime, timedelta, timezone

from signalbox.history.what_if.rate import Rate, chart
from signalbox.history.what_if.window import PastWindow

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
DAY, QUARTER = PastWindow.before(NOW, "1d"), PastWindow.before(NOW, "15m")
EAST = timezone(timedelta(hours=3))


def at(hour, minute=0, *, day=23):
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_the_rate_counts_the_steps_without_messages():
    rate = Rate.of({at(8): 40, at(9): 8, at(10): 40}, DAY)

    assert (rate.peak, rate.peak_at, rate.mean, rate.empty, rate.number) == (40, at(8), 88 / 24, 21, 24)
    assert rate.sentence(EAST) == "at most 40 an hour (2026-11-23 11:00), 3.7 on average, none in 21 of 24 hours"
    assert rate.document() == {"per": "hour", "peak": 40, "peak_at": at(8).isoformat(), "mean": 3.67}


def test_a_large_mean_is_a_whole_number():
    rate = Rate.of({at(11, 50): 30_000}, QUARTER)

    assert rate.sentence(UTC).startswith(
        "at most 30,000 a minute (2026-11-23 11:50), 2,000 on average, none in 14 of 15"
    )


def test_without_messages_the_rate_is_none():
    rate = Rate.of({}, PastWindow.before(NOW, "1m"))

    assert rate.sentence(UTC) == "none in 1 minute"
    assert rate.document()["peak_at"] is None


def test_the_chart_has_a_row_for_a_day_and_a_column_for_an_hour_of_the_zone():
    rows = list(chart({at(12, day=22): 1, at(20, day=22): 80, at(21, day=22): 40}, DAY, EAST))

    assert rows == [
        f"2026-11-22  {' ' * 15}▁·······█  81",
        f"2026-11-23  ▄··············{' ' * 9}  40",
    ]


def test_the_chart_of_minutes_has_a_row_for_an_hour():
    (row,) = chart({at(11, 46): 3}, QUARTER, UTC)

    assert row == f"2026-11-23 11:00  {' ' * 45}·█·············  3"
    assert set(next(chart({}, QUARTER, UTC))[18:-3]) == {" ", "·"}
