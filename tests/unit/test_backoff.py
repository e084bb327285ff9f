"""Exponential back-off with full jitter, within the time that is left."""

from datetime import timedelta

import pytest

from signalbox.backoff import ATTEMPTS, LONGEST_SECONDS, Backoff, longest_pause
from tests.fakes.backoff import SteppedClock


def test_the_first_attempt_is_at_once_and_the_others_follow_ever_longer_pauses():
    clock = SteppedClock()

    attempts = list(Backoff(clock, lambda: 1.0).attempts())

    assert attempts == list(range(ATTEMPTS))
    assert clock.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_the_whole_pause_is_random():
    clock, draws = SteppedClock(), iter([0.5, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0])

    list(Backoff(clock, lambda: next(draws)).attempts())

    assert clock.slept[:3] == [0.05, 0.0, 0.1]


@pytest.mark.parametrize("repetition", [6, 7, 50, 10_000])
def test_pauses_have_an_upper_bound(repetition):
    assert longest_pause(repetition) == LONGEST_SECONDS


def test_no_attempt_begins_after_the_deadline():
    clock = SteppedClock()
    deadline = clock.now() + timedelta(seconds=0.5)

    attempts = list(Backoff(clock, lambda: 1.0, lambda: deadline).attempts())

    assert attempts == [0, 1, 2]
    assert clock.now() <= deadline


def test_a_call_is_made_once_even_when_no_time_is_left():
    clock = SteppedClock()

    assert list(Backoff(clock, lambda: 1.0, clock.now).attempts()) == [0]
