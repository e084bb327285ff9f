"""Tests wait as long as there is progress, and not forever without."""

import pytest

from tests import patience


@pytest.fixture
def clock(monkeypatch):
    """A clock on which a second passes in each pause."""

    class Clock:
        now = 0.0

    def sleep(_seconds):
        Clock.now += 1

    monkeypatch.setattr(patience.time, "monotonic", lambda: Clock.now)
    monkeypatch.setattr(patience.time, "sleep", sleep)
    return Clock


def test_the_result_is_returned_as_soon_as_it_is_there(clock):
    assert patience.wait_for(lambda: clock.now >= 3 and "it", "the end", seconds=10) == "it"
    assert clock.now == 3


def test_a_deadline_names_what_is_missing(clock):
    with pytest.raises(AssertionError, match="within 10 s, not the end"):
        patience.wait_for(lambda: False, "the end", seconds=10)

    assert clock.now == 10


def test_progress_renews_the_deadline(clock):
    assert patience.wait_for(lambda: clock.now >= 100, "the end", seconds=10, progress=lambda: clock.now // 8)
    with pytest.raises(AssertionError):
        patience.wait_for(lambda: False, "the end", seconds=10, progress=lambda: clock.now // 12)
