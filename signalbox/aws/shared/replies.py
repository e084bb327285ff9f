"""SQS as the control plane uses it: replies to commands, its own queue, and what cannot be answered."""

import json
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.dead_letters import bury
from signalbox.control.protocol import REJECTED
from signalbox.messages import MAXIMUM_BYTES
from signalbox.queues import QueueName, QueueUrl
from signalbox.splitting.control.commands import Reconcile, reconcile_body

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

TOO_LONG = "the reply is longer than a message may be: ask for less, such as one target, exchange or queue"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SqsReplies:
    """Sends replies to the queues of clients, which are in the account and region of the control queue."""

    sqs: "SQSClient"
    control_queue_url: str
    dead_letter_queue_url: str

    def url(self, name: QueueName) -> QueueUrl:
        """Return the URL of a queue beside the control queue."""
        return QueueUrl(f"{self.control_queue_url.rpartition('/')[0]}/{name}")

    def result(self, queue: QueueName, request_id: str, result: object) -> None:
        """Reply with the result of a command."""
        body = _body({"id": request_id, "ok": True, "result": result})
        if len(body.encode()) > MAXIMUM_BYTES:
            self.error(queue, request_id, TOO_LONG, REJECTED)
            return
        self._send(queue, body)

    def error(self, queue: QueueName, request_id: str, error: str, code: str) -> None:
        """Reply that a command was not carried out, and why."""
        self._send(queue, _body({"id": request_id, "ok": False, "error": error, "code": code}))

    def bury(self, body: str, *, reason: str, message_id: str) -> None:
        """Put a message that nobody can be told about into the dead-letter queue, with its reason."""
        bury(self.sqs, self.dead_letter_queue_url, body, reason=reason, message_id=message_id)

    def _send(self, queue: QueueName, body: str) -> None:
        try:
            self.sqs.send_message(QueueUrl=self.url(queue), MessageBody=body)
        except self.sqs.exceptions.QueueDoesNotExist:
            logger.warning("nobody waits for a reply in %s any more", queue)


@dataclass(frozen=True, slots=True)
class SqsControlQueue:
    """`ControlQueue`: commands that the control plane sends to itself."""

    sqs: "SQSClient"
    control_queue_url: str

    def ask(self, command: Reconcile, *, delay: timedelta) -> None:
        """Ask for a round after a delay."""
        self.sqs.send_message(
            QueueUrl=self.control_queue_url,
            MessageBody=reconcile_body(command),
            DelaySeconds=round(delay.total_seconds()),
        )


def _body(document: dict[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), default=str)
