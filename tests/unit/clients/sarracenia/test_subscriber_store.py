"""What a subscriber keeps on disk."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.clients.sarracenia.subscriber import Failed, Received
from signalbox.clients.sarracenia.subscriber_store import CLAIM, StateNotKept, opened

MOMENT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RECEIVED = Received("body \ud800", {"sum": "s,é"}, "xs_alice", "v03.a")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "state.sqlite"


def failed(after: int = 0) -> Failed:
    return Failed(RECEIVED, 1, MOMENT + after * SECOND, "no \ud800")


def test_what_was_seen_is_remembered_by_all_who_share_the_state(path):
    with opened(path) as one, opened(path) as other:
        one.see("key", now=MOMENT)
        one.see("key", now=MOMENT + SECOND)

        assert (other.last_seen("key"), other.last_seen("other")) == (MOMENT + SECOND, None)


def test_what_was_seen_long_ago_is_forgotten(path):
    with opened(path) as state:
        state.see("old", now=MOMENT)
        state.see("new", now=MOMENT + SECOND)

        state.forget(before=MOMENT + SECOND)

        assert (state.last_seen("old"), state.last_seen("new")) == (None, MOMENT + SECOND)


def test_what_failed_is_there_for_the_next_one(path):
    with opened(path) as state:
        state.add(failed())

    with opened(path) as state:
        assert state.claim(now=MOMENT).failed == failed()


def test_what_failed_waits_for_its_time_and_is_tried_in_order(path):
    with opened(path) as state:
        assert (state.next_due(), state.waiting(), state.claim(now=MOMENT)) == (None, 0, None)
        state.add(failed(2))
        state.add(failed(1))

        assert (state.next_due(), state.waiting(), state.claim(now=MOMENT)) == (MOMENT + SECOND, 2, None)
        assert state.claim(now=MOMENT + 2 * SECOND).failed == failed(1)
        assert state.claim(now=MOMENT + 2 * SECOND).failed == failed(2)


def test_nobody_else_tries_what_one_tries_unless_that_one_is_gone(path):
    with opened(path) as one, opened(path) as other:
        one.add(failed())
        claimed = one.claim(now=MOMENT)

        assert other.claim(now=MOMENT + CLAIM - SECOND) is None
        assert other.claim(now=MOMENT + CLAIM).number == claimed.number


def test_what_was_tried_again_is_done_with(path):
    with opened(path) as state:
        state.add(failed())
        state.finish(state.claim(now=MOMENT))

        assert state.waiting() == 0


def test_a_state_that_cannot_be_kept_is_told(tmp_path):
    (tmp_path / "file").write_text("no database, but long enough to be taken for one" * 100)

    with pytest.raises(StateNotKept, match="cannot keep"), opened(tmp_path / "file"):
        pass
    with pytest.raises(StateNotKept, match="cannot keep"), opened(tmp_path / "file" / "below"):
        pass
