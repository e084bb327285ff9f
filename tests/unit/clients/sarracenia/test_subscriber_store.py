"""The store of a subscriber on disk."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.clients.sarracenia.subscriber import AnnouncedMessage, FailedMessage
from signalbox.clients.sarracenia.subscriber_store import CLAIM_DURATION, StoreUnavailable, open_store

MOMENT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RECEIVED = AnnouncedMessage("body \ud800", {"sum": "s,é"}, "xs_alice", "v03.a")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "state.sqlite"


def failed(after: int = 0) -> FailedMessage:
    return FailedMessage(RECEIVED, 1, MOMENT + after * SECOND, "no \ud800")


def test_recorded_keys_are_visible_to_all_instances(path):
    with open_store(path) as one, open_store(path) as other:
        one.record("key", now=MOMENT)
        one.record("key", now=MOMENT + SECOND)

        assert (other.last_seen("key"), other.last_seen("other")) == (MOMENT + SECOND, None)


def test_old_keys_are_deleted(path):
    with open_store(path) as store:
        store.record("old", now=MOMENT)
        store.record("new", now=MOMENT + SECOND)

        store.delete_keys(before=MOMENT + SECOND)

        assert (store.last_seen("old"), store.last_seen("new")) == (None, MOMENT + SECOND)


def test_a_failed_message_survives_a_restart(path):
    with open_store(path) as store:
        store.add(failed())

    with open_store(path) as store:
        assert store.claim(now=MOMENT).failed == failed()


def test_failed_messages_are_claimed_when_due_and_in_order(path):
    with open_store(path) as store:
        assert (store.next_due(), store.waiting(), store.claim(now=MOMENT)) == (None, 0, None)
        store.add(failed(2))
        store.add(failed(1))

        assert (store.next_due(), store.waiting(), store.claim(now=MOMENT)) == (MOMENT + SECOND, 2, None)
        assert store.claim(now=MOMENT + 2 * SECOND).failed == failed(1)
        assert store.claim(now=MOMENT + 2 * SECOND).failed == failed(2)


def test_a_claimed_message_is_claimed_by_others_only_after_the_claim_expires(path):
    with open_store(path) as one, open_store(path) as other:
        one.add(failed())
        claimed = one.claim(now=MOMENT)

        assert other.claim(now=MOMENT + CLAIM_DURATION - SECOND) is None
        assert other.claim(now=MOMENT + CLAIM_DURATION).number == claimed.number


def test_a_finished_message_is_deleted(path):
    with open_store(path) as store:
        store.add(failed())
        store.finish(store.claim(now=MOMENT))

        assert store.waiting() == 0


def test_an_unusable_file_is_reported(tmp_path):
    (tmp_path / "file").write_text("no database, but long enough to be taken for one" * 100)

    with pytest.raises(StoreUnavailable, match="cannot store"), open_store(tmp_path / "file"):
        pass
    with pytest.raises(StoreUnavailable, match="cannot store"), open_store(tmp_path / "file" / "below"):
        pass
