"""Selections of kept messages: a time, each message once, in order, whatever is deleted or kept meanwhile."""

from datetime import timedelta

from signalbox.kept.objects import kept_batch, queue_prefix
from signalbox.kept.selection import KeptMessages, KeptSelection
from signalbox.messages import Message
from signalbox.queues import QueueName
from tests.fakes.clock import START
from tests.fakes.kept import MemoryKeptMessages

MEMES = QueueName("memes")
MINUTE = timedelta(minutes=1)


def keep(store: MemoryKeptMessages, *bodies: str, minutes: float) -> str:
    messages = [Message.parse({"MessageId": body, "Body": body}) for body in bodies]
    batch = kept_batch(MEMES, messages, at=START + minutes * MINUTE)
    store.put(batch)
    return batch.stored_as.key


def of_minutes(store: MemoryKeptMessages, start: float, end: float) -> KeptMessages:
    return KeptMessages(store, MEMES, START + start * MINUTE, START + end * MINUTE)


def test_messages_of_a_time_are_found_oldest_first():
    store = MemoryKeptMessages()
    for minutes in (3, 1, 2, 4):
        keep(store, f"{minutes}a", f"{minutes}b", minutes=minutes)

    found = [message.body for _, message in of_minutes(store, 2, 4)]

    assert found == ["2a", "2b", "3a", "3b"]


def test_a_message_that_was_kept_twice_is_found_once_where_it_was_kept_first():
    store = MemoryKeptMessages()
    first = keep(store, "1", "2", minutes=1)
    second = keep(store, "2", "3", minutes=2)
    kept = of_minutes(store, 0, 9)

    selection = KeptSelection.of(kept)

    assert selection.ids == {first: ["1", "2"], second: ["3"]}
    assert kept.left_out == {"stored again": 1}


class Deleting(MemoryKeptMessages):
    """Kept messages that are deleted after they are listed."""

    def read(self, key: str) -> str | None:
        return None


def test_what_is_deleted_meanwhile_or_unreadable_is_left_out():
    store = MemoryKeptMessages()
    keep(store, "1", minutes=1)
    store.texts[keep(store, "2", minutes=2)] = '{"version":2}'
    store.texts[f"{queue_prefix(MEMES)}zzz/notes.txt"] = "notes"
    kept = of_minutes(store, 0, 9)

    assert [message.body for _, message in kept] == ["1"]
    assert kept.left_out == {"in objects of another version (their number)": 1}
    assert list(of_minutes(Deleting(store.texts), 0, 9)) == []


def test_a_selection_is_read_as_it_was_written_and_has_a_name_of_its_own():
    selection = KeptSelection({"kept/memes/a": ["1", "2"], "kept/memes/b": ["3"]})  # type: ignore[list-item]

    assert KeptSelection.parse(selection.text) == selection
    assert selection.digest != KeptSelection({"kept/memes/a": ["1"]}).digest  # type: ignore[list-item]
