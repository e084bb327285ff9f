"""Replies of the control plane: to the queue of who asked, in the size of a message, or to nobody any more."""

import json
from datetime import timedelta

import pytest

from signalbox.aws.shared.replies import TOO_LONG, SqsReplies
from signalbox.aws.splitting.control_queue import SqsControlQueue
from signalbox.messages import MAXIMUM_BYTES
from signalbox.queues import QueueName
from signalbox.splitting.control.commands import Reconcile, reconcile_body
from signalbox.splitting.model.target import Target

QUEUE = QueueName("replies-of-ann")
REQUEST = "r1"


@pytest.fixture
def urls(sqs) -> dict[str, str]:
    return {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in (QUEUE, "control")}


@pytest.fixture
def replies(sqs, urls) -> SqsReplies:
    return SqsReplies(sqs, control_queue_url=urls["control"])


@pytest.fixture
def received(sqs, urls):
    def messages(name: str) -> list[dict]:
        asked = {"QueueUrl": urls[name], "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        return sqs.receive_message(**asked).get("Messages", [])

    return messages


def test_who_asked_is_told_the_result(replies, received):
    replies.result(QUEUE, REQUEST, {"splits": ["a"]})

    (message,) = received(QUEUE)
    assert json.loads(message["Body"]) == {"id": REQUEST, "ok": True, "result": {"splits": ["a"]}}


def test_who_asked_is_told_why_a_command_was_not_carried_out(replies, received):
    replies.error(QUEUE, REQUEST, "there is no queue x", "rejected")

    (message,) = received(QUEUE)
    assert json.loads(message["Body"]) == {
        "id": REQUEST,
        "ok": False,
        "error": "there is no queue x",
        "code": "rejected",
    }


def test_a_result_that_no_message_can_hold_is_told_as_an_error(replies, received):
    replies.result(QUEUE, REQUEST, "x" * MAXIMUM_BYTES)

    (message,) = received(QUEUE)
    assert json.loads(message["Body"])["error"] == TOO_LONG


def test_a_queue_that_is_gone_waits_for_no_reply(replies, caplog):
    replies.result(QueueName("replies-of-bob"), REQUEST, None)

    assert "replies-of-bob" in caplog.text


def test_the_control_plane_asks_itself_for_another_round(sqs, urls, received):
    command = Reconcile(Target.parse("lambda/orders"), holder="h1")

    SqsControlQueue(sqs, urls["control"]).ask(command, delay=timedelta(0))

    assert [message["Body"] for message in received("control")] == [reconcile_body(command)]
