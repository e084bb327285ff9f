"""The client of a control queue, and its replies in a reply queue that several clients share."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from signalbox.clients.control import LONGEST_PAUSE_SECONDS, ControlClient, NoControlReply
from signalbox.control.protocol import CommandRejected, InvalidControlReply
from signalbox.new_queues import PAUSES

CONTROL_URL, REPLY_URL = "https://sqs/1/signalbox-split-control", "https://sqs/1/signalbox-split-reply"


class QueueMissing(Exception):
    """The error for a queue that does not exist, or not yet."""


class Exceptions:
    QueueDoesNotExist = QueueMissing


@dataclass
class Queues:
    """A fake SQS client of a stage; only waits and pauses advance the clock."""

    answer: Callable[[dict[str, Any]], list[dict[str, Any]]]
    calls: Counter[str] = field(default_factory=Counter)
    waits: list[int] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    exceptions: type[Exceptions] = Exceptions
    unknown_calls: int = 0
    slept: list[float] = field(default_factory=list)

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803 (boto3's name)
        assert QueueUrl == CONTROL_URL
        self.calls["SendMessage"] += 1
        self.replies += map(json.dumps, self.answer(json.loads(MessageBody)))

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int, WaitTimeSeconds: int) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == REPLY_URL
        self.unknown_calls -= 1
        if self.unknown_calls >= 0:
            raise QueueMissing
        self.calls["ReceiveMessage"] += 1
        if not self.replies:
            self.waits.append(WaitTimeSeconds)
            return {}
        bodies, self.replies = self.replies[:MaxNumberOfMessages], self.replies[MaxNumberOfMessages:]
        taken = {f"receipt {self.calls['ReceiveMessage']}.{number}": body for number, body in enumerate(bodies)}
        self.held |= taken
        return {"Messages": [{"Body": body, "ReceiptHandle": receipt} for receipt, body in taken.items()]}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        assert QueueUrl == REPLY_URL
        self.calls["DeleteMessage"] += 1
        del self.held[ReceiptHandle]

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == REPLY_URL
        self.calls["ChangeMessageVisibilityBatch"] += 1
        assert {entry["VisibilityTimeout"] for entry in Entries} == {0}
        self.replies += [self.held.pop(entry["ReceiptHandle"]) for entry in Entries]
        return {}

    def client(self, *, seconds: int = 45) -> ControlClient:
        return ControlClient(
            self,
            CONTROL_URL,
            REPLY_URL,
            reply_timeout=timedelta(seconds=seconds),
            clock=lambda: sum(self.waits) + sum(self.slept),
            sleep=self.slept.append,
        )


def echo(command: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": command["id"], "ok": True, "result": command}]


def test_the_client_of_a_new_user_waits_until_sqs_knows_the_reply_queue():
    queues = Queues(echo, unknown_calls=3)

    assert queues.client().ask("status")["command"] == "status"
    assert queues.slept == list(PAUSES[:3])


def test_a_reply_queue_that_is_gone_ends_the_wait():
    with pytest.raises(QueueMissing):
        Queues(echo, unknown_calls=100).client().ask("status")


def test_the_reply_to_a_command_is_received():
    queues = Queues(echo)

    result = queues.client().ask("status", {"target": "lambda/app"})

    assert result == {"command": "status", "id": result["id"], "reply": True, "target": "lambda/app"}
    assert (queues.replies, queues.held) == ([], {})


def test_the_pages_of_a_list_are_one_result():
    pages = {"": (["a", "b"], "b"), "b": (["c"], "c"), "c": ([], None)}

    def answer(command: dict[str, Any]) -> list[dict[str, Any]]:
        assert command["exchange"] == "xs_a"
        result, after = pages[command.get("after", "")]
        return [{"id": command["id"], "ok": True, "result": result, "next": after}]

    assert Queues(answer).client().ask("bindings", {"exchange": "xs_a"}) == ["a", "b", "c"]


def test_a_command_costs_three_calls():
    """A client with a queue of its own made two more, to create and to delete it."""
    queues = Queues(echo)
    client = queues.client()

    for _ in range(5):
        client.ask("status")

    assert queues.calls == {"SendMessage": 5, "ReceiveMessage": 5, "DeleteMessage": 5}


def test_each_command_has_a_unique_id():
    client = Queues(echo).client()

    assert client.ask("registries")["id"] != client.ask("registries")["id"]


def test_a_reply_to_another_client_is_returned_at_once():
    theirs = {"id": "theirs", "ok": True, "result": "theirs"}
    queues = Queues(lambda command: [theirs, {"id": command["id"], "ok": True, "result": "mine"}])

    assert queues.client().ask("status") == "mine"
    assert [json.loads(body) for body in queues.replies] == [theirs]
    assert (queues.held, queues.slept) == ({}, [])


def test_clients_that_share_a_queue_each_get_their_own_replies():
    waiting: list[dict[str, Any]] = []
    queues = Queues(lambda command: waiting.append(command) or [])
    first, second = queues.client(seconds=1), queues.client(seconds=1)
    for client in (first, second):
        with pytest.raises(NoControlReply):
            client.ask("whoami")
    queues.answer = echo
    queues.replies = [json.dumps({"id": one["id"], "ok": True, "result": "late"}) for one in waiting]

    assert second.ask("status")["command"] == first.ask("status")["command"] == "status"
    assert (queues.replies, queues.held) == ([], {})  # each client deleted its late reply, too


def test_a_reply_whose_client_has_gone_costs_few_calls():
    queues = Queues(lambda _command: [{"id": "gone", "ok": True, "result": "theirs"}])

    with pytest.raises(NoControlReply):
        queues.client(seconds=45).ask("status")

    assert queues.slept[:4] == [0.05, 0.1, 0.2, 0.4]
    assert max(queues.slept) == LONGEST_PAUSE_SECONDS
    assert queues.calls["ReceiveMessage"] == queues.calls["ChangeMessageVisibilityBatch"] < 52


@pytest.mark.parametrize("body", ["{", "[]", '{"id": 1}'])
def test_what_is_no_reply_is_left_to_expire(body):
    queues = Queues(echo, replies=[body])

    assert queues.client().ask("status")["command"] == "status"
    assert queues.replies == [body]


def test_an_invalid_reply_is_raised_to_its_client_and_deleted():
    queues = Queues(lambda command: [{"id": command["id"], "ok": False}])

    with pytest.raises(InvalidControlReply):
        queues.client().ask("status")
    assert (queues.replies, queues.held) == ([], {})


def test_a_refusal_is_raised():
    queues = Queues(lambda command: [{"id": command["id"], "ok": False, "error": "no registry", "code": "rejected"}])

    with pytest.raises(CommandRejected, match=r"^no registry$"):
        queues.client().ask("start")


def test_a_command_without_a_reply_fails_after_the_reply_timeout():
    queues = Queues(lambda _command: [])

    with pytest.raises(NoControlReply, match=r"did not reply to 'status' .*the log of its function `control` has"):
        queues.client().ask("status")
    assert queues.waits == [20, 20, 5]


def test_a_command_may_have_its_own_timeout():
    queues = Queues(lambda _command: [])

    with pytest.raises(NoControlReply):
        queues.client().ask("heartbeat", timeout=timedelta(seconds=3))
    assert queues.waits == [3]
