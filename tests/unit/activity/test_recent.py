"""The activity is read again after the time for which it is kept."""

from datetime import UTC, datetime, timedelta

from signalbox.activity.recent import RecentActivity

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def test_a_read_is_kept_for_its_time():
    reads = []
    recent = RecentActivity(lambda now: reads.append(now) or [], timedelta(seconds=60))

    found = [recent.at(NOW + timedelta(seconds=seconds))[0] for seconds in (0, 59, 60, 61)]

    later = NOW + timedelta(seconds=60)
    assert found == [NOW, NOW, later, later]
    assert reads == [NOW, later]
