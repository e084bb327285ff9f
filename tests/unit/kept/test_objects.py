"""Kept batches: keys in the order of time, and messages that are read as they were kept."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.errors import RejectedError
from signalbox.kept.objects import KeptObject, UnreadableBatch, kept_batch, key_at, read_batch
from signalbox.messages import Message
from signalbox.queues import QueueName

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUEUE = QueueName("orders.fifo")
MESSAGE = Message.parse(
    {
        "MessageId": "m-1",
        "ReceiptHandle": "handle",
        "Body": "secret",
        "Attributes": {"SenderId": "AIDA", "MessageGroupId": "g"},
        "MessageAttributes": {"color": {"DataType": "String", "StringValue": "red"}},
    }
)


def test_the_key_has_queue_day_hour_and_milliseconds():
    key = kept_batch(QUEUE, [MESSAGE], at=NOON).stored_as.key

    assert key == "kept/orders.fifo/2026-11-21/12/1795262400000-a461b472cb41a9ec.json"
    assert KeptObject.parse(key).kept_at == NOON
    assert KeptObject.parse(key).key == key


@given(st.lists(st.timedeltas(timedelta(0), timedelta(days=400)), min_size=2, max_size=5))
def test_keys_are_in_the_order_of_time(ages):
    moments = [NOON + age for age in ages]

    by_key = sorted(moments, key=lambda moment: kept_batch(QUEUE, [MESSAGE], at=moment).stored_as.key)

    milliseconds = [int(moment.timestamp() * 1000) for moment in by_key]
    assert milliseconds == sorted(milliseconds)


def test_the_beginning_of_a_moment_is_between_the_keys_of_its_neighbours():
    earlier, later = (kept_batch(QUEUE, [MESSAGE], at=NOON + age * timedelta(milliseconds=1)) for age in (-1, 0))

    assert earlier.stored_as.key < key_at(QUEUE, NOON) < later.stored_as.key


def test_messages_are_read_as_they_were_kept_without_their_receipts():
    (found,) = read_batch(kept_batch(QUEUE, [MESSAGE], at=NOON).text)

    assert (found.message_id, found.body, found.attributes) == ("m-1", "secret", MESSAGE.attributes)
    assert found.system_attributes == MESSAGE.system_attributes
    assert "ReceiptHandle" not in found.document


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "messages": [{}]}'])
def test_other_texts_are_no_batch(text):
    with pytest.raises(RejectedError, match=r"kept messages|message"):
        read_batch(text)


@pytest.mark.parametrize("key", ["kept/a", "kept/a/b/c/d-e.json", "raw/dt=2026/x"])
def test_other_keys_are_no_batch(key):
    with pytest.raises(UnreadableBatch, match="is not the key of kept messages"):
        KeptObject.parse(key)
