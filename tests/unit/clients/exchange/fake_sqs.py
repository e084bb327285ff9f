"""SQS in memory for clients of the exchange; time advances only by the test."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

URL_PREFIX = "https://sqs/1/"
SENT_AT = 1_700_000_000_000  # milliseconds

Answer = Callable[[dict[str, Any]], object]


class QueueDoesNotExist(ClientError):
    pass


class Exceptions:
    ClientError = ClientError
    QueueDoesNotExist = QueueDoesNotExist


class Refusal(Exception):
    """The reply of a stage that refuses a command."""


@dataclass
class Kept:
    """A message in a queue; it is invisible until `hidden`."""

    message: dict[str, Any]
    receipt: str
    hidden: int = 0


@dataclass
class PretendedSqs:
    """Queues by name, and a stage that replies to commands in control queues."""

    queues: dict[str, list[Kept]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    users: set[str] = field(default_factory=lambda: {"", "-alice"})
    denied: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    exceptions = Exceptions
    _numbers: itertools.count = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.queues |= {f"dev-exchange-reply{user}": [] for user in self.users}

    def named(self, operation: str) -> list[dict[str, Any]]:
        return [request for name, request in self.calls if name == operation]

    def put(self, queue: str, message: dict[str, Any]) -> str:
        number = str(next(self._numbers))
        received = {"MessageId": f"m{number}", "ReceiptHandle": f"r{number}", "Body": message["MessageBody"]}
        received["MessageAttributes"] = message.get("MessageAttributes", {})
        received["Attributes"] = {"SentTimestamp": str(SENT_AT), "ApproximateReceiveCount": "1"}
        self.queues[queue].append(Kept(received, f"r{number}"))
        return f"m{number}"

    def get_queue_url(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803 (boto3's name)
        self._queue("GetQueueUrl", {"QueueUrl": URL_PREFIX + QueueName})
        return {"QueueUrl": URL_PREFIX + QueueName}

    def send_message(self, **request: Any) -> dict[str, str]:
        self._queue("SendMessage", request)
        if "-exchange-control" in request["QueueUrl"]:
            self._answer(json.loads(request["MessageBody"]), _name(request))
            return {"MessageId": "command"}
        return {"MessageId": self.put(_name(request), request)}

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        self._queue("SendMessageBatch", request)
        taken = [one for one in request["Entries"] if one["MessageBody"] not in self.failing]
        failed = [one for one in request["Entries"] if one["MessageBody"] in self.failing]
        return {
            "Successful": [{"Id": one["Id"], "MessageId": self.put(_name(request), one)} for one in taken],
            "Failed": [{"Id": one["Id"], "Code": "InternalError", "SenderFault": False} for one in failed],
        }

    def receive_message(self, **request: Any) -> dict[str, Any]:
        queue = self._queue("ReceiveMessage", request)
        found = [one for one in queue if not one.hidden][: request["MaxNumberOfMessages"]]
        for one in found:
            one.hidden = request.get("VisibilityTimeout", 30)
        return {"Messages": [one.message for one in found]} if found else {}

    def delete_message(self, **request: Any) -> None:
        self._delete(self._queue("DeleteMessage", request), request["ReceiptHandle"])

    def delete_message_batch(self, **request: Any) -> dict[str, Any]:
        queue = self._queue("DeleteMessageBatch", request)
        failed = [one for one in request["Entries"] if one["ReceiptHandle"] in self.failing]
        for one in request["Entries"]:
            if one not in failed:
                self._delete(queue, one["ReceiptHandle"])
        return {"Failed": [{"Id": one["Id"], "Message": "not now"} for one in failed]}

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        queue = self._queue("ChangeMessageVisibilityBatch", request)
        for entry in request["Entries"]:
            for one in queue:
                if one.receipt == entry["ReceiptHandle"]:
                    one.hidden = entry["VisibilityTimeout"]
        return {}

    def _queue(self, operation: str, request: dict[str, Any]) -> list[Kept]:
        self.calls.append((operation, request))
        if _name(request) in self.denied:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)
        if _name(request).removeprefix("dev-exchange-control") in self.users:
            return []
        if _name(request) not in self.queues:
            raise QueueDoesNotExist({"Error": {"Code": "QueueDoesNotExist", "Message": "none"}}, operation)
        return self.queues[_name(request)]

    def _answer(self, command: dict[str, Any], control_queue: str) -> None:
        self.asked.append(command)
        try:
            answer = {"ok": True, "result": self.answers[command["command"]](command)}
        except Refusal as refusal:
            answer = {"ok": False, "error": str(refusal), "code": "rejected"}
        if command.get("reply"):
            reply = json.dumps({"id": command["id"], **answer})
            self.put(control_queue.replace("-control", "-reply"), {"MessageBody": reply})

    @staticmethod
    def _delete(queue: list[Kept], receipt: str) -> None:
        queue[:] = [one for one in queue if one.receipt != receipt]


def _name(request: dict[str, Any]) -> str:
    return request["QueueUrl"].removeprefix(URL_PREFIX)
