"""The past messages of split queues, from the rows of their query."""

from datetime import UTC, datetime

from signalbox.history.what_if.past_splits import past_splits
from signalbox.history.what_if.window import PastWindow

WINDOW = PastWindow.before(datetime(2026, 11, 23, 12, 30, tzinfo=UTC), "1d")
ROW = {"bucket": "2026-11-23 11", "source": "q", "target": "t", "kind": "routed", "outcome": "deployed"}
ROW |= {"session": None, "owner": None, "verdict": None, "messages": "7", "bytes": "70", "largest": "20", "number": "1"}


def test_rows_that_do_not_fit_are_noted():
    assert past_splits([{**ROW, "number": "2"}], WINDOW).is_cut
    assert not past_splits([ROW], WINDOW).is_cut


def test_without_rows_nothing_came_in():
    found = past_splits([], WINDOW)

    assert (found.incoming.messages, found.largest_bytes, found.shares, found.is_cut) == (0, 0, [], False)


def test_the_document_has_the_steps_and_the_shares():
    found = past_splits([ROW, {**ROW, "outcome": "copied", "session": "s", "owner": "ann"}], WINDOW).document()

    assert found["buckets"] == [{"at": "2026-11-23T11:00:00+00:00", "messages": 7}]
    assert found["shares"][0] == {
        "session": None,
        "owner": None,
        "event": "routed: deployed",
        "why": None,
        "messages": 7,
        "bytes": 70,
    }
