"""Replies of the control plane: their queue, their size limit, and deleted reply queues."""

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


def test_a_reply_to_a_deleted_queue_is_logged_and_dropped(replies, caplog):
    replies.result(QueueName("replies-of-bob"), REQUEST, None)

    assert "replies-of-bob" in caplog.text


def test_the_control_plane_sends_reconcile_commands_to_its_own_queue(sqs, urls, received):
    command = Reconcile(Target.parse("lambda/orders"), holder="h1")

    SqsControlQueue(sqs, urls["control"]).ask(command, delay=timedelta(0))

    assert [message["Body"] for message in received("control")] == [reconcile_body(command)]
