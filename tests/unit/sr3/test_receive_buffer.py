"""What an instance of sr3 has taken: when SQS is told what is done, and what others get again."""

from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.clients.exchange.consumer import Consumer
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.sr3.receive_buffer import PATIENCE_SECONDS, Intake
from tests.unit.clients.exchange.fake_sqs import SENT_AT, URL_PREFIX, PretendedSqs

QUEUE = "q_alice_in"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def sqs() -> PretendedSqs:
    return PretendedSqs({QUEUE: []})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def intake(sqs: PretendedSqs, clock: Clock) -> Iterator[Intake]:
    consumer = Consumer(sqs, ResourceRef(ResourceKind.QUEUE, QUEUE), URL_PREFIX + QUEUE)
    yield Intake(consumer, clock)
    consumer.close()


def put(sqs: PretendedSqs, count: int) -> None:
    told = {"topic": "v03.a", "exchange": "xpublic", "message_id": "id", "publisher": "bob"}
    attributes: dict[str, Any] = {name: {"DataType": "String", "StringValue": text} for name, text in told.items()}
    attributes["published_at"] = {"DataType": "Number", "StringValue": str(SENT_AT)}
    for number in range(count):
        sqs.put(QUEUE, {"MessageBody": str(number), "MessageAttributes": attributes})


def take_all(intake: Intake) -> list[str]:
    intake.fill(wait_seconds=0)
    return [intake.next().receipt for _ in range(intake.waiting)]


def deletions(sqs: PretendedSqs) -> list[int]:
    return [len(call["Entries"]) for call in sqs.named("DeleteMessageBatch")]


def test_sqs_is_told_of_ten_at_once_and_of_the_last_ones_when_nothing_is_worked_on(sqs, intake):
    put(sqs, 25)

    finished = [intake.finish(receipt) for receipt in take_all(intake)]

    assert all(finished)
    assert deletions(sqs) == [10, 10, 5]
    assert sqs.queues[QUEUE] == []


def test_what_is_done_is_told_at_the_latest_before_more_is_taken(sqs, intake):
    put(sqs, 2)
    first, _ = take_all(intake)
    intake.finish(first)
    assert deletions(sqs) == []

    intake.fill(wait_seconds=0)

    assert deletions(sqs) == [1]


def test_nothing_more_is_taken_while_something_waits_here(sqs, intake):
    put(sqs, 3)
    intake.fill(wait_seconds=0)
    put(sqs, 3)

    intake.fill(wait_seconds=0)

    assert intake.waiting == 3


def test_what_sr3_forgets_is_for_others_after_half_an_hour(sqs, intake, clock):
    put(sqs, 1)
    (receipt,) = take_all(intake)
    clock.now = PATIENCE_SECONDS + 1

    assert take_all(intake) == [receipt]


def test_what_sr3_works_on_is_its_own_until_then(sqs, intake, clock):
    put(sqs, 1)
    take_all(intake)
    clock.now = PATIENCE_SECONDS

    assert take_all(intake) == []


def test_what_was_given_back_is_done_too_late(sqs, intake):
    put(sqs, 1)
    intake.fill(wait_seconds=0)
    taken = intake.next()
    intake.give_back(taken)

    assert not intake.finish(taken.receipt)
    assert sqs.queues[QUEUE][0].hidden == 0


def test_a_message_is_acknowledged_once(sqs, intake):
    put(sqs, 1)
    (receipt,) = take_all(intake)

    assert [intake.finish(receipt), intake.finish(receipt)] == [True, False]
    assert deletions(sqs) == [1]
