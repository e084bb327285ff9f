"""The past that a question is about."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from signalbox.history.what_if.window import Bucket, InvalidWindow, PastWindow, parse_bucket

NOW = datetime(2026, 11, 23, 12, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1m", timedelta(minutes=1)),
        ("90m", timedelta(minutes=90)),
        ("2h", timedelta(hours=2)),
        ("31d", timedelta(days=31)),
        ("1w", timedelta(weeks=1)),
    ],
)
def test_a_duration_ends_now(text, length):
    window = PastWindow.before(NOW.astimezone(timezone(timedelta(hours=2))), text)

    assert (window.start, window.end, window.length) == (NOW - length, NOW, length)
    assert window.end.tzinfo is UTC


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5h", "7 d", "7D", "٣d", "9999999d", "never"])
def test_another_text_is_no_duration(text):
    with pytest.raises(InvalidWindow, match="expected a number with a unit"):
        PastWindow.before(NOW, text)


@pytest.mark.parametrize("text", ["0m", "32d", "999999w"])
def test_a_duration_may_be_a_minute_to_31_days(text):
    with pytest.raises(InvalidWindow, match="from 1m to 31d"):
        PastWindow.before(NOW, text)


def test_up_to_six_hours_are_counted_by_minutes():
    assert PastWindow.before(NOW, "6h").bucket is Bucket.MINUTE
    assert PastWindow.before(NOW, "361m").bucket is Bucket.HOUR


def test_the_buckets_cover_the_window():
    minutes, hours = (list(PastWindow.before(NOW, text).buckets()) for text in ("2m", "7h"))

    assert [f"{begin:%H:%M:%S}" for begin in minutes] == ["12:28:00", "12:29:00", "12:30:00"]
    assert [f"{begin:%H:%M}" for begin in hours] == [f"{hour:02}:00" for hour in range(5, 13)]


def test_the_text_of_a_bucket_is_the_beginning_of_a_timestamp():
    for bucket, begin in ((Bucket.MINUTE, "2026-11-23 12:30"), (Bucket.HOUR, "2026-11-23 12")):
        assert NOW.isoformat(sep=" ")[: bucket.characters] == begin
        assert parse_bucket(begin) == bucket.begin(NOW)


def test_a_month_has_thirty_days():
    assert PastWindow.before(NOW, "3d").months == pytest.approx(0.1)
