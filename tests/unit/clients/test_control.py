"""The client of the control queue."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from signalbox.clients.control import ControlClient, NoControlReply
from signalbox.control.protocol import CommandRejected
from signalbox.new_queues import PAUSES

PREFIX = "signalbox-split-reply-"
CONTROL_URL = "https://sqs/1/signalbox-split-control"


class QueueMissing(Exception):
    """The error for a queue that does not exist, or not yet."""


class Exceptions:
    QueueDoesNotExist = QueueMissing


@dataclass
class Queues:
    """A fake SQS client of a stage; only its receives advance the clock."""

    answer: Callable[[dict[str, Any]], list[dict[str, Any]]]
    made: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    receipts: list[str] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    exceptions: type[Exceptions] = Exceptions
    unknown_calls: int = 0
    slept: list[float] = field(default_factory=list)

    def create_queue(self, **request: Any) -> dict[str, str]:
        self.made.append(request)
        return {"QueueUrl": f"https://sqs/1/{request['QueueName']}"}

    def delete_queue(self, *, QueueUrl: str) -> None:  # noqa: N803 (boto3's name)
        self.deleted.append(QueueUrl)

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803
        assert QueueUrl == CONTROL_URL
        self.replies += self.answer(json.loads(MessageBody))

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int, WaitTimeSeconds: int) -> dict[str, Any]:  # noqa: N803
        self.unknown_calls -= 1
        if self.unknown_calls >= 0:
            raise QueueMissing
        self.waits.append(WaitTimeSeconds)
        if not self.replies:
            return {}
        body = json.dumps(self.replies.pop(0))
        return {"Messages": [{"Body": body, "ReceiptHandle": f"receipt {len(self.waits)}"}]}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        self.receipts.append(ReceiptHandle)

    def client(self, *, seconds: int = 45) -> ControlClient:
        return ControlClient(
            self,
            CONTROL_URL,
            PREFIX,
            stage="signalbox",
            capability="splitting",
            reply_timeout=timedelta(seconds=seconds),
            clock=lambda: float(sum(self.waits)),
            sleep=self.slept.append,
        )


def test_a_client_waits_until_sqs_knows_its_new_reply_queue():
    queues = Queues(echo, unknown_calls=3)

    with queues.client() as client:
        assert client.ask("status")["command"] == "status"

    assert queues.slept == list(PAUSES[:3])


def test_a_reply_queue_that_is_gone_ends_the_wait():
    queues = Queues(echo, unknown_calls=100)

    with queues.client() as client, pytest.raises(QueueMissing):
        client.ask("status")


def echo(command: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": command["id"], "ok": True, "result": command}]


def test_the_reply_to_a_command_is_received_from_a_queue_of_the_client():
    queues = Queues(echo)

    with queues.client() as client:
        result = client.ask("status", {"target": "lambda/app"})

    (made,) = queues.made
    url = f"https://sqs/1/{made['QueueName']}"
    assert made["QueueName"].startswith(PREFIX)
    assert (made["tags"]["signalbox:stage"], made["tags"]["signalbox:capability"]) == ("signalbox", "splitting")
    assert result == {"command": "status", "id": result["id"], "reply_queue_url": url, "target": "lambda/app"}
    assert queues.receipts == ["receipt 1"]
    assert queues.deleted == [url]


def test_each_command_has_a_unique_id():
    with Queues(echo).client() as client:
        assert client.ask("registries")["id"] != client.ask("registries")["id"]


def test_a_reply_to_another_command_is_deleted_and_ignored():
    late = {"id": "of before", "ok": True, "result": "late"}
    queues = Queues(lambda command: [late, {"id": command["id"], "ok": True, "result": "mine"}])

    with queues.client() as client:
        assert client.ask("status") == "mine"
    assert queues.receipts == ["receipt 1", "receipt 2"]


def test_a_refusal_is_raised_and_the_reply_queue_is_deleted():
    queues = Queues(lambda command: [{"id": command["id"], "ok": False, "error": "no registry", "code": "rejected"}])

    with pytest.raises(CommandRejected, match=r"^no registry$"), queues.client() as client:
        client.ask("start")
    assert len(queues.deleted) == 1


def test_a_command_without_a_reply_fails_after_the_reply_timeout():
    queues = Queues(lambda _command: [])

    with queues.client() as client, pytest.raises(NoControlReply, match="did not reply to 'status'"):
        client.ask("status")
    assert queues.waits == [20, 20, 5]


def test_a_command_may_have_its_own_timeout():
    queues = Queues(lambda _command: [])

    with queues.client() as client, pytest.raises(NoControlReply):
        client.ask("heartbeat", timeout=timedelta(seconds=3))
    assert queues.waits == [3]
