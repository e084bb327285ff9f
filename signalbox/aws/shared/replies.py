"""Replies to commands, sent to the reply queues of users."""

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.aws.shared.settings import SystemClock
from signalbox.clock import Clock
from signalbox.control.protocol import REJECTED
from signalbox.messages import MAXIMUM_BYTES
from signalbox.new_queues import when_usable
from signalbox.queues import QueueName, QueueUrl

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

TOO_LONG = "the reply exceeds the size of a message: request less, such as one target, exchange or queue"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SqsReplies:
    """Sends replies to reply queues, which are in the account and region of the control queue."""

    sqs: "SQSClient"
    control_queue_url: str
    clock: Clock = field(default_factory=SystemClock)

    def url(self, name: QueueName) -> QueueUrl:
        """Return the URL of a queue in the account and region of the control queue."""
        return QueueUrl(f"{self.control_queue_url.rpartition('/')[0]}/{name}")

    def result(self, queue: QueueName, request_id: str, result: object) -> None:
        """Reply with the result of a command."""
        body = _body({"id": request_id, "ok": True, "result": result})
        if len(body.encode()) > MAXIMUM_BYTES:
            self.error(queue, request_id, TOO_LONG, REJECTED)
            return
        self._send(queue, body)

    def error(self, queue: QueueName, request_id: str, error: str, code: str) -> None:
        """Reply that a command failed, with the reason and the code `REJECTED` or `UNAVAILABLE`."""
        self._send(queue, _body({"id": request_id, "ok": False, "error": error, "code": code}))

    def _send(self, queue: QueueName, body: str) -> None:
        missing = self.sqs.exceptions.QueueDoesNotExist
        try:
            # The queue of a new user is new.
            when_usable(
                lambda: self.sqs.send_message(QueueUrl=self.url(queue), MessageBody=body),
                missing=missing,
                sleep=self.clock.sleep,
            )
        except missing:
            logger.warning("the reply queue %s does not exist", queue)


def _body(document: dict[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), default=str)
