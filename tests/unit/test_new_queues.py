"""Calls to queues that SQS does not know yet."""

import pytest

from signalbox.new_queues import PAUSES, when_usable
from tests.fakes.backoff import SteppedClock


class Missing(Exception):
    """The error for a queue that does not exist."""


def missing_times(count: int):
    """Return a call that fails this often."""
    left = [count]

    def call() -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise Missing
        return "sent"

    return call


@pytest.mark.parametrize("failures", range(len(PAUSES) + 1))
def test_a_call_is_repeated_until_the_queue_is_known(failures):
    clock = SteppedClock()

    assert when_usable(missing_times(failures), missing=Missing, sleep=clock.sleep) == "sent"

    assert clock.slept == list(PAUSES[:failures])


def test_a_queue_that_stays_unknown_is_missing():
    with pytest.raises(Missing):
        when_usable(missing_times(len(PAUSES) + 1), missing=Missing, sleep=SteppedClock().sleep)


def test_other_errors_are_not_repeated():
    clock = SteppedClock()

    with pytest.raises(ZeroDivisionError):
        when_usable(lambda: 1 / 0, missing=Missing, sleep=clock.sleep)

    assert clock.slept == []


def test_the_pauses_are_longer_than_sqs_needs():
    assert sum(PAUSES) > 1
