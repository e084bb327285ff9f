"""Replies to commands, sent to the reply queues of users."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.aws.shared.settings import SystemClock
from signalbox.clock import Clock
from signalbox.control.pages import json_text, page
from signalbox.control.protocol import REJECTED
from signalbox.messages import MAXIMUM_BYTES
from signalbox.new_queues import when_usable
from signalbox.queues import QueueName, QueueUrl

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

MAXIMUM_ERROR = 50_000  # characters: a command may have as many problems as fit into its message
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

    def result(self, queue: QueueName, request_id: str, result: object, *, after: str = "") -> None:
        """Reply with the result of a command, of a list that exceeds a message with the page after `after`."""
        document = {"id": request_id, "ok": True, "result": result}
        body = json_text(document)
        if isinstance(result, list) and (after or len(body) > MAXIMUM_BYTES):
            body = json_text(document | page(result, after=after))
        if len(body) > MAXIMUM_BYTES:
            self.error(queue, request_id, TOO_LONG, REJECTED)
            return
        self._send(queue, body)

    def error(self, queue: QueueName, request_id: str, error: str, code: str) -> None:
        """Reply that a command failed, with the reason and the code `REJECTED` or `UNAVAILABLE`."""
        shown = error if len(error) <= MAXIMUM_ERROR else f"{error[:MAXIMUM_ERROR]}…"
        self._send(queue, json_text({"id": request_id, "ok": False, "error": shown, "code": code}))

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
