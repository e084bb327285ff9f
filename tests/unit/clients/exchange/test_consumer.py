"""Consumers: receiving, extending, acknowledging and releasing messages."""

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.consumer import Consumer, heartbeat
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.names import StageNames
from signalbox.sarracenia.rights.names import UserName
from tests.unit.clients.exchange.fake_sqs import SENT_AT, URL_PREFIX, PretendedSqs

QUEUE = "q_alice_in"
DEADLINE_SECONDS = 10


@pytest.fixture
def sqs() -> PretendedSqs:
    sqs = PretendedSqs({QUEUE: []})
    sqs.answers["consuming"] = lambda command: {"queue": command["queue"], "prefetch": 25, "expires_seconds": None}
    return sqs


def delivered(body: str = "hello", **more: str) -> dict[str, Any]:
    attributes = {
        "topic": ("String", "v03.a"),
        "exchange": ("String", "xpublic"),
        "message_id": ("String", "id of old"),
        "publisher": ("String", "bob"),
        "published_at": ("Number", str(SENT_AT)),
        **{name: ("Number", text) for name, text in more.items()},
    }
    return {
        "MessageBody": body,
        "MessageAttributes": {n: {"DataType": kind, "StringValue": text} for n, (kind, text) in attributes.items()},
    }


def consuming(sqs: PretendedSqs, **more: Any):
    client = ExchangeClient(sqs, StageNames("dev"), URL_PREFIX, UserName("alice"), sleep=lambda _: None)
    return client.consumer(QUEUE, **more)


def bodies(taken) -> list[str]:
    return [one.delivered.body for one in taken]


def hidden(sqs: PretendedSqs) -> dict[str, int]:
    return {one.message["Body"]: one.hidden for one in sqs.queues[QUEUE]}


def test_a_message_has_its_exchange_and_publisher(sqs):
    message = delivered(sequence="7")
    message["MessageAttributes"]["raw"] = {"DataType": "Binary", "BinaryValue": b"\x00"}
    sqs.put(QUEUE, message)

    with consuming(sqs) as consumer:
        (taken,) = consumer.receive()

    content = taken.delivered
    assert (content.key, content.exchange, content.publisher, content.sequence) == ("v03.a", "xpublic", "bob", 7)
    assert (content.body, content.headers) == ("hello", {"raw": "AA=="})
    assert (taken.receipt, taken.times_received) == ("r1", 1)


def test_the_first_sign_of_life_is_given_before_anything_is_taken(sqs):
    with consuming(sqs):
        assert [(one["command"], one["queue"]) for one in sqs.asked] == [("consuming", QUEUE)]


def test_as_much_is_taken_as_the_queue_says_by_tens(sqs):
    for number in range(40):
        sqs.put(QUEUE, delivered(str(number)))

    with consuming(sqs) as consumer:
        taken = consumer.receive()
        assert consumer.unacknowledged == 25
        requests = [call for call in sqs.named("ReceiveMessage") if call["QueueUrl"].endswith(QUEUE)]

    assert bodies(taken) == [str(number) for number in range(25)]
    assert [one["MaxNumberOfMessages"] for one in requests] == [10, 10, 5]
    assert [one["WaitTimeSeconds"] for one in requests] == [20, 0, 0]


def test_a_consumer_may_choose_how_much_it_takes(sqs):
    for number in range(9):
        sqs.put(QUEUE, delivered(str(number)))

    with consuming(sqs, prefetch=3) as consumer:
        first = consumer.receive()
        none = consumer.receive(wait_seconds=0)
        consumer.ack(first[0], first[1])
        second = consumer.receive()

    assert (bodies(first), none, bodies(second)) == (["0", "1", "2"], [], ["3", "4"])


def test_a_queue_that_has_no_more_is_not_asked_again(sqs):
    sqs.put(QUEUE, delivered())

    with consuming(sqs) as consumer:
        consumer.receive()

        assert len([call for call in sqs.named("ReceiveMessage") if call["QueueUrl"].endswith(QUEUE)]) == 1


def test_messages_come_one_by_one_for_ever(sqs):
    for body in "ab":
        sqs.put(QUEUE, delivered(body))
    seen = []

    with consuming(sqs) as consumer:
        for taken in consumer:
            consumer.ack(taken)
            seen.append(taken.delivered.body)
            if seen == ["a", "b"]:
                sqs.put(QUEUE, delivered("c"))
            if len(seen) == 3:
                break

    assert seen == ["a", "b", "c"]
    assert sqs.queues[QUEUE] == []


def test_acknowledged_messages_are_deleted_ten_a_call(sqs):
    for number in range(12):
        sqs.put(QUEUE, delivered(str(number)))

    with consuming(sqs) as consumer:
        consumer.ack(*consumer.receive())

    assert sqs.queues[QUEUE] == []
    assert [len(call["Entries"]) for call in sqs.named("DeleteMessageBatch")] == [10, 2]


def test_messages_that_sqs_does_not_delete_are_delivered_again(sqs, caplog):
    sqs.put(QUEUE, delivered())
    sqs.failing = {"r1"}

    with consuming(sqs) as consumer:
        consumer.ack(*consumer.receive())

    assert len(sqs.queues[QUEUE]) == 1
    assert "a message was not deleted: not now" in caplog.text


def test_released_messages_are_visible_at_once(sqs):
    for body in "ab":
        sqs.put(QUEUE, delivered(body))

    with consuming(sqs) as consumer:
        first, _second = consumer.receive()
        assert hidden(sqs) == {"a": 60, "b": 60}
        consumer.ack(first)

    assert hidden(sqs) == {"b": 0}


def test_a_message_may_be_given_back_while_others_are_kept(sqs):
    for body in "ab":
        sqs.put(QUEUE, delivered(body))

    with consuming(sqs) as consumer:
        first, _second = consumer.receive()
        consumer.release(first)

        assert hidden(sqs) == {"a": 0, "b": 60}
        assert bodies(consumer.receive()) == ["a"]


def test_the_visibility_of_unacknowledged_messages_is_extended(sqs):
    sqs.put(QUEUE, delivered())

    with consuming(sqs, hold=timedelta(seconds=90)) as consumer:
        consumer.receive()
        sqs.queues[QUEUE][0].hidden = 1
        consumer.extend()

        assert hidden(sqs) == {"hello": 90}


def test_expired_messages_are_deleted_unseen(sqs):
    sqs.put(QUEUE, delivered("old", expires_at=str(SENT_AT)))
    sqs.put(QUEUE, delivered("young", expires_at=str(SENT_AT + 4_000_000_000_000)))

    with consuming(sqs) as consumer:
        assert bodies(consumer.receive()) == ["young"]
        assert consumer.expired == 1

    assert list(hidden(sqs)) == ["young"]


def test_messages_that_no_exchange_sent_are_left_in_the_queue(sqs, caplog):
    sqs.put(QUEUE, {"MessageBody": "by hand"})
    sqs.put(QUEUE, delivered())

    with consuming(sqs) as consumer:
        assert bodies(consumer.receive()) == ["hello"]
        assert consumer.unreadable == 1

    assert hidden(sqs)["by hand"] == 60
    assert "message m1 is left to be a dead letter: " in caplog.text


def test_a_queue_that_is_deleted_meanwhile_is_named(sqs):
    with consuming(sqs) as consumer:
        del sqs.queues[QUEUE]
        with pytest.raises(NotFound, match=f"queue '{QUEUE}' does not exist"):
            consumer.receive()


def test_a_foreign_queue_is_named_with_the_user(sqs):
    sqs.denied = {QUEUE}

    with consuming(sqs) as consumer, pytest.raises(NotPermitted, match=f"user 'alice' may not consume .* '{QUEUE}'"):
        consumer.receive()


def test_a_consumer_waits_for_room_that_another_thread_makes(sqs):
    for body in "ab":
        sqs.put(QUEUE, delivered(body))

    with consuming(sqs, prefetch=1) as consumer:
        (first,) = consumer.receive()
        worker = threading.Timer(0.01, consumer.ack, [first])
        worker.start()

        assert bodies(consumer.receive(wait_seconds=DEADLINE_SECONDS)) == ["b"]
        worker.join()


def test_a_queue_that_may_expire_gets_signs_of_life_by_itself(sqs):
    said = threading.Event()

    def consuming_command(command: dict[str, Any]) -> dict[str, Any]:
        if "reply" not in command:
            said.set()
        return {"queue": command["queue"], "prefetch": 25, "expires_seconds": 0.04}

    sqs.answers["consuming"] = consuming_command

    with consuming(sqs):
        assert said.wait(DEADLINE_SECONDS)


def test_a_beat_that_fails_is_followed_by_others(caplog):
    beaten = threading.Event()
    beats = iter([ConnectionError("no network")])

    def beat() -> None:
        for error in beats:
            raise error
        beaten.set()

    with heartbeat(beat, every=timedelta(milliseconds=1)):
        assert beaten.wait(DEADLINE_SECONDS)

    assert "a consumer's sign of life failed: no network" in caplog.text


def test_an_interrupted_consumer_releases_its_messages(sqs):
    sqs.put(QUEUE, delivered())

    with suppress(KeyboardInterrupt), consuming(sqs) as consumer:
        consumer.receive()
        raise KeyboardInterrupt

    assert hidden(sqs) == {"hello": 0}


def test_the_default_prefetch_is_25(sqs):
    sqs.answers["consuming"] = lambda command: {"queue": command["queue"]}

    with consuming(sqs) as consumer:
        assert isinstance(consumer, Consumer)
        assert consumer.prefetch == 25
