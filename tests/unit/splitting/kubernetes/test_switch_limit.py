"""The limit of switches in ten minutes."""

from datetime import UTC, datetime, timedelta

from signalbox.splitting.kubernetes.switch_record import is_limit_reached, outdated, switch_annotation

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def noted(*minutes: float) -> dict[str, str]:
    return {"environment:x": "{}"} | {switch_annotation(NOW - timedelta(minutes=ago)): "" for ago in minutes}


def test_the_sixth_switch_in_ten_minutes_is_one_too_many():
    assert not is_limit_reached(noted(1, 2, 3, 4), NOW)
    assert not is_limit_reached(noted(1, 2, 3, 4, 10), NOW)
    assert is_limit_reached(noted(1, 2, 3, 4, 9.9), NOW)


def test_older_switches_do_not_count_any_more():
    assert outdated(noted(1, 11), NOW) == [switch_annotation(NOW - timedelta(minutes=11))]
