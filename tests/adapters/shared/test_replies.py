"""Replies of the control plane: their queue, their size limit, and deleted reply queues."""

import json
from datetime import timedelta

import pytest

from signalbox.aws.shared.replies import TOO_LONG, SqsReplies
from signalbox.aws.splitting.control_queue import SqsControlQueue
from signalbox.messages import MAXIMUM_BYTES
from signalbox.new_queues import PAUSES
from signalbox.queues import QueueName
from signalbox.splitting.control.commands import Reconcile, reconcile_body
from signalbox.splitting.model.target import Target
from tests.fakes.backoff import SteppedClock

QUEUE = QueueName("replies-of-ann")
REQUEST = "r1"


class NotYetUsable:
    """An SQS client that does not know a new queue for some calls, as AWS documents of the first second."""

    def __init__(self, sqs, *, calls: int) -> None:
        self.sqs, self.left = sqs, calls
        self.exceptions = sqs.exceptions

    def send_message(self, **arguments: object) -> object:
        self.left -= 1
        if self.left >= 0:
            raise self.exceptions.QueueDoesNotExist({"Error": {"Code": "QueueDoesNotExist"}}, "SendMessage")
        return self.sqs.send_message(**arguments)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def urls(sqs) -> dict[str, str]:
    return {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in (QUEUE, "control")}


@pytest.fixture
def replies(sqs, urls, clock) -> SqsReplies:
    return SqsReplies(sqs, control_queue_url=urls["control"], clock=clock)


@pytest.fixture
def received(sqs, urls):
    def messages(name: str) -> list[dict]:
        arguments = {"QueueUrl": urls[name], "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        return sqs.receive_message(**arguments).get("Messages", [])

    return messages


def test_the_result_is_sent_to_the_reply_queue(replies, received):
    replies.result(QUEUE, REQUEST, {"splits": ["a"]})

    (message,) = received(QUEUE)
    assert json.loads(message["Body"]) == {"id": REQUEST, "ok": True, "result": {"splits": ["a"]}}


def test_the_reason_of_a_failed_command_is_sent_to_the_reply_queue(replies, received):
    replies.error(QUEUE, REQUEST, "there is no queue x", "rejected")

    (message,) = received(QUEUE)
    assert json.loads(message["Body"]) == {
        "id": REQUEST,
        "ok": False,
        "error": "there is no queue x",
        "code": "rejected",
    }


def test_a_result_larger_than_a_message_is_replaced_by_an_error(replies, received):
    replies.result(QUEUE, REQUEST, "x" * MAXIMUM_BYTES)

    (message,) = received(QUEUE)
    assert json.loads(message["Body"])["error"] == TOO_LONG


def test_an_error_with_very_many_problems_is_cut(replies, received):
    replies.error(QUEUE, REQUEST, "\U0001f600" * MAXIMUM_BYTES, "rejected")

    (message,) = received(QUEUE)
    assert json.loads(message["Body"])["error"].endswith("\U0001f600…")


def test_a_list_larger_than_a_message_is_sent_in_pages(replies, received):
    entries, after = [{"exchange": f"xs_{number}", "text": "x" * 1_000} for number in range(2_000)], ""

    found = []
    while after is not None:
        replies.result(QUEUE, REQUEST, entries, after=after)
        (message,) = received(QUEUE)
        reply = json.loads(message["Body"])
        found, after = [*found, *reply["result"]], reply["next"]

    assert sorted(found, key=lambda one: int(one["exchange"][3:])) == entries


def test_a_reply_to_a_deleted_queue_is_logged_and_dropped(replies, clock, caplog):
    replies.result(QueueName("replies-of-bob"), REQUEST, None)

    assert "replies-of-bob" in caplog.text
    assert clock.slept == list(PAUSES)


def test_a_reply_to_a_queue_that_sqs_does_not_know_yet_is_sent_again(sqs, urls, clock, received):
    new = NotYetUsable(sqs, calls=2)

    SqsReplies(new, urls["control"], clock).result(QUEUE, REQUEST, None)

    (message,) = received(QUEUE)
    assert json.loads(message["Body"])["id"] == REQUEST
    assert clock.slept == list(PAUSES[:2])


def test_the_control_plane_sends_reconcile_commands_to_its_own_queue(sqs, urls, received):
    command = Reconcile(Target.parse("lambda/orders"), holder="h1")

    SqsControlQueue(sqs, urls["control"]).ask(command, delay=timedelta(0))

    assert [message["Body"] for message in received("control")] == [reconcile_body(command)]
