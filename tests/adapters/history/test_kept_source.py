"""The kept source: a stored selection from any position, also when objects were deleted or added."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.history.kept_source import KeptSource, S3KeptSelections
from signalbox.errors import EffectFailed
from signalbox.history.replay_state import InvalidReplay, ReplayId, ReplayProgress
from signalbox.kept.objects import kept_batch
from signalbox.kept.selection import KeptMessages, KeptSelection
from signalbox.messages import Message
from signalbox.queues import QueueName
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.fakes.kept import MemoryKeptMessages

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
AGAIN, MEMES = ReplayId("again"), QueueName("memes")
PLANNED = ReplayProgress(AGAIN, {}, "", messages=0, size_bytes=0, planned_at=NOON)


def keep(store: MemoryKeptMessages, *bodies: str, minutes: int = 1) -> str:
    messages = [Message.parse({"MessageId": f"id of {body}", "Body": body}) for body in bodies]
    batch = kept_batch(MEMES, messages, at=NOON + timedelta(minutes=minutes))
    store.put(batch)
    return batch.stored_as.key


def selected(store: MemoryKeptMessages) -> KeptSelection:
    return KeptSelection.of(KeptMessages(store, MEMES, NOON, NOON + timedelta(hours=1)))


def source(store: MemoryKeptMessages, selection: KeptSelection, position: int = 0) -> KeptSource[str]:
    return KeptSource(store, selection, position, read=lambda message: message.body)


def test_the_selected_messages_are_taken_in_order_from_any_position():
    store = MemoryKeptMessages()
    keep(store, "1", "2", "3")
    keep(store, "4", minutes=2)
    selection = selected(store)
    keep(store, "5", minutes=3)  # after the selection

    found = source(store, selection, 1)

    assert [(one.origin, one.item) for one in found.take(2, PLANNED)] == [("id of 2", "2"), ("id of 3", "3")]
    found.discard(["id of 2"])
    assert [one.item for one in found.take(9, PLANNED)] == ["4"]
    assert list(found.take(9, PLANNED)) == []
    assert found.is_repeatable


def test_a_message_that_was_deleted_since_has_its_place_and_no_item():
    store = MemoryKeptMessages()
    first = keep(store, "1", "2")
    keep(store, "3", minutes=2)
    selection = selected(store)
    del store.texts[first]

    found = source(store, selection, 1).take(9, PLANNED)

    assert [(one.origin, one.item) for one in found] == [("id of 2", None), ("id of 3", "3")]


def test_a_selection_is_stored_under_a_name_that_no_other_one_gets(s3):
    lists = S3KeptSelections(s3, "history", "replays/")
    store = MemoryKeptMessages()
    keep(store, "1")
    one = selected(store)
    keep(store, "2", minutes=2)
    other = selected(store)

    names = [lists.save(AGAIN, selection) for selection in (one, other)]

    assert [lists.load(AGAIN, name) for name in names] == [one, other]
    assert all(
        found["Key"].startswith("replays/again.kept-") for found in s3.list_objects_v2(Bucket="history")["Contents"]
    )


def test_a_selection_that_has_expired_and_a_missing_bucket_raise(s3):
    with pytest.raises(InvalidReplay, match="'again' has expired: start a new replay"):
        S3KeptSelections(s3, "history", "replays/").load(AGAIN, "0")
    with pytest.raises(EffectFailed, match="NoSuchBucket"):
        S3KeptSelections(s3, "missing", "replays/").load(AGAIN, "0")
