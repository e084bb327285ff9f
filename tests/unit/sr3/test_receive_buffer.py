"""The receive buffer of sr3's driver: acknowledgements, and messages given back."""

from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.clients.exchange.consumer import Consumer
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox_sr3.receive_buffer import ACKNOWLEDGE_TIMEOUT_SECONDS, ReceiveBuffer
from tests.fakes.clock import Seconds
from tests.unit.clients.exchange.fake_sqs import SENT_AT, URL_PREFIX, PretendedSqs

QUEUE = "q_alice_in"


@pytest.fixture
def sqs() -> PretendedSqs:
    return PretendedSqs({QUEUE: []})


@pytest.fixture
def clock() -> Seconds:
    return Seconds(0.0)


@pytest.fixture
def buffer(sqs: PretendedSqs, clock: Seconds) -> Iterator[ReceiveBuffer]:
    consumer = Consumer(sqs, ResourceRef(ResourceKind.QUEUE, QUEUE), URL_PREFIX + QUEUE)
    yield ReceiveBuffer(consumer, clock)
    consumer.close()


def put(sqs: PretendedSqs, count: int) -> None:
    texts = {"topic": "v03.a", "exchange": "xpublic", "message_id": "id", "publisher": "bob"}
    attributes: dict[str, Any] = {name: {"DataType": "String", "StringValue": text} for name, text in texts.items()}
    attributes["published_at"] = {"DataType": "Number", "StringValue": str(SENT_AT)}
    for number in range(count):
        sqs.put(QUEUE, {"MessageBody": str(number), "MessageAttributes": attributes})


def take_all(buffer: ReceiveBuffer) -> list[str]:
    buffer.fill(wait_seconds=0)
    return [buffer.next().receipt for _ in range(buffer.waiting)]


def deletions(sqs: PretendedSqs) -> list[int]:
    return [len(call["Entries"]) for call in sqs.named("DeleteMessageBatch")]


def test_messages_are_acknowledged_in_batches_of_ten_and_when_none_is_in_progress(sqs, buffer):
    put(sqs, 25)

    finished = [buffer.finish(receipt) for receipt in take_all(buffer)]

    assert all(finished)
    assert deletions(sqs) == [10, 10, 5]
    assert sqs.queues[QUEUE] == []


def test_handled_messages_are_acknowledged_before_more_are_received(sqs, buffer):
    put(sqs, 2)
    first, _ = take_all(buffer)
    buffer.finish(first)
    assert deletions(sqs) == []

    buffer.fill(wait_seconds=0)

    assert deletions(sqs) == [1]


def test_forgotten_messages_are_given_back_after_half_an_hour(sqs, buffer, clock):
    put(sqs, 1)
    (receipt,) = take_all(buffer)
    clock.now = ACKNOWLEDGE_TIMEOUT_SECONDS + 1

    assert take_all(buffer) == [receipt]


def test_messages_in_progress_stay_hidden_for_half_an_hour(sqs, buffer, clock):
    put(sqs, 1)
    take_all(buffer)
    clock.now = ACKNOWLEDGE_TIMEOUT_SECONDS

    assert take_all(buffer) == []


def test_a_message_that_was_given_back_cannot_be_finished(sqs, buffer):
    put(sqs, 1)
    buffer.fill(wait_seconds=0)
    taken = buffer.next()
    buffer.release(taken)

    assert not buffer.finish(taken.receipt)
    assert sqs.queues[QUEUE][0].hidden == 0
