"""A scheduled task works in parts, and each run begins elsewhere."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.task_time import PART, TaskTime

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def taken(at: datetime, count: int, *, parts: int) -> list[int]:
    """Return the values that a run takes which has time for some parts."""
    times = iter([at, *(at + timedelta(seconds=second) for second in range(count + 2))])
    task = TaskTime(lambda: next(times), at + timedelta(seconds=parts))
    return [value for part in task.parts(range(count)) for value in part]


def test_a_run_with_time_takes_each_value_once():
    assert sorted(taken(NOON, 305, parts=100)) == list(range(305))
    assert taken(NOON, 0, parts=1) == []


def test_a_run_stops_after_the_part_in_which_its_time_ends():
    assert len(taken(NOON, 305, parts=2)) == 2 * PART
    assert taken(NOON, 305, parts=0) == []


@pytest.mark.parametrize("interval", [timedelta(minutes=1), timedelta(minutes=5), timedelta(days=1)])
def test_runs_with_time_for_one_part_reach_every_value(interval):
    runs = [taken(NOON + number * interval, 305, parts=1) for number in range(60)]

    assert {value for run in runs for value in run} == set(range(305))


def test_each_value_has_an_equal_share_of_the_time_that_is_left():
    moment = NOON
    task = TaskTime(lambda: moment, NOON + timedelta(seconds=12))
    ends = {}
    for value, until in task.shares("abcd"):
        ends[value] = until
        # The first takes no time, the second more than its share, the third all that is left.
        moment = [NOON, NOON + timedelta(seconds=8), NOON + timedelta(seconds=12)][len(ends) - 1]

    assert list(ends.values()) == [NOON + timedelta(seconds=seconds) for seconds in (3, 4, 10)]
    assert len(ends) == 3


def test_half_of_the_time_is_left_for_the_next_step():
    task = TaskTime(lambda: NOON, NOON + timedelta(seconds=20))

    assert task.half().until == NOON + timedelta(seconds=10)
