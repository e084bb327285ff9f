"""The queues of inboxes and timers."""

import json
from datetime import timedelta

import pytest

from signalbox.aws.live.inbox import InvalidTimer, SqsInbox, SqsTimers, timed_connection
from signalbox.errors import EffectFailed
from signalbox.live.model.state import ConnectionId, Lost
from tests.golden.files import RecordingSqs

C1, C2 = ConnectionId("c1="), ConnectionId("c2=")


@pytest.fixture
def queue(sqs):
    return sqs.create_queue(QueueName="inbox.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]


def taken(sqs, queue):
    received = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, AttributeNames=["All"])
    return [(one["Attributes"]["MessageGroupId"], one["Body"]) for one in received.get("Messages", [])]


def test_frames_and_signals_are_in_the_order_of_their_connection_once(sqs, queue) -> None:
    inbox = SqsInbox(sqs, queue)

    for _ in range(2):
        inbox.put_frame(C1, "[1]", request="r1")
        inbox.notify(C1, Lost(), request="r2")
    inbox.notify(C2, Lost(), request="r2")

    assert sorted(taken(sqs, queue)) == [("c1=", "f[1]"), ("c1=", '{"heard": "lost"}'), ("c2=", '{"heard": "lost"}')]


def test_a_queue_that_does_not_answer_is_an_error(sqs, queue) -> None:
    with pytest.raises(EffectFailed, match="the queue of inboxes"):
        SqsInbox(sqs, queue + "-gone").put_frame(C1, "[1]", request="r1")
    with pytest.raises(EffectFailed, match="the queue of timers"):
        SqsTimers(sqs, queue + "-gone").start(C1)


def test_a_timer_is_delayed_by_a_little_more_than_the_join_timeout(sqs) -> None:
    url = sqs.create_queue(QueueName="timers")["QueueUrl"]

    SqsTimers(sqs, url).start(C1)

    waiting = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert waiting["ApproximateNumberOfMessagesDelayed"] == "1"
    assert timed_connection('{"connection": "c1="}') == C1


@pytest.mark.parametrize(("seconds", "delay"), [(-5, 1), (0, 1), (10, 11), (10.2, 12), (840, 841), (10_000, 841)])
def test_a_timer_has_a_delay_that_sqs_allows(seconds, delay) -> None:
    sent = RecordingSqs()

    SqsTimers(sent, "timers").start(C1, after=timedelta(seconds=seconds))

    assert [message["DelaySeconds"] for message in sent.sent] == [delay]


@pytest.mark.parametrize("body", ["nonsense", "[" * 100_000, "{}", "[]", '{"connection": 1}'])
def test_an_invalid_timer_is_reported_by_its_length_and_not_by_its_text(body) -> None:
    with pytest.raises(InvalidTimer, match=f"^a message of {len(body)} characters is not a timer: "):
        timed_connection(body)


@pytest.mark.parametrize("connection", ["", "c 1", "c" * 129, "é"])
def test_the_connection_of_a_timer_must_be_a_valid_message_group_id(connection) -> None:
    with pytest.raises(InvalidTimer, match=r"^connection: expected 1 to 128 characters"):
        timed_connection(json.dumps({"connection": connection}))
