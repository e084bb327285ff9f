"""Demonstrations run side by side; history begins when the others have recorded what it counts."""

import threading

import pytest

from signalbox.errors import UnavailableError
from signalbox.local.demo.evidence import Demonstration, Evidence, Lane

WAIT_SECONDS = 10.0


def test_the_rows_of_a_lane_are_those_of_its_demonstrations_in_order():
    lane = Lane(
        None, [Demonstration("live", lambda _: [("log", "20")]), Demonstration("history", lambda _: [("a", "b")])]
    )

    assert lane.rows() == [Evidence("live", "log", "20"), Evidence("history", "a", "b")]


def test_events_are_there_before_a_demonstration_ends():
    may_end = threading.Event()

    def rows(_):
        yield "deliveries", "30"
        assert may_end.wait(WAIT_SECONDS)
        yield "afterwards", "as before"

    lane = Lane(None, [Demonstration("splitting", rows, counted="deliveries")])
    lane.wait_for_events()
    may_end.set()

    assert [row.what for row in lane.rows()] == ["deliveries", "afterwards"]


def test_a_failed_demonstration_is_raised_to_all_who_wait():
    def rows(_):
        yield "sessions", "2"
        raise UnavailableError("messages reached wrong consumers")

    lane = Lane(None, [Demonstration("splitting", rows, counted="deliveries"), Demonstration("live", lambda _: [])])

    for wait in (lane.wait_for_events, lane.rows):
        with pytest.raises(UnavailableError, match="wrong consumers"):
            wait()
