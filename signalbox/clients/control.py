"""The control client: sends commands to a control queue and receives their replies on its own reply queue.

Needs these permissions: sqs:SendMessage on the control queue; sqs:CreateQueue, sqs:TagQueue, sqs:ReceiveMessage,
sqs:DeleteMessage and sqs:DeleteQueue on queues whose names begin with the reply queue prefix.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from signalbox.control.protocol import REPLY_QUEUE_RANDOM_BYTES, ControlReply, command_body
from signalbox.errors import UnavailableError
from signalbox.new_queues import when_usable
from signalbox.queues import lease_tags

LONG_POLL_SECONDS = 20
REPLY_TIMEOUT = timedelta(seconds=60)
# A reply that its client does not receive within this time is useless.
RETENTION_SECONDS = 3600
# The longest life of a client; the sweeper deletes the reply queue of a crashed client after it.
LEASE = timedelta(days=7)


class NoControlReply(UnavailableError):
    """Raised when the stage does not reply in time; the command may have been executed."""


class SqsExceptions(Protocol):
    """The exceptions of boto3's SQS client."""

    @property
    def QueueDoesNotExist(self) -> type[Exception]:  # noqa: N802 (boto3's name)
        """Raised for a queue that does not exist, or not yet."""
        ...


class SqsClient(Protocol):
    """The methods of boto3's SQS client that a control client calls."""

    @property
    def exceptions(self) -> SqsExceptions:
        """Return the exceptions of the client."""
        ...

    @property
    def create_queue(self) -> Callable[..., Any]:
        """Create a queue and return a mapping with its `QueueUrl`."""
        ...

    @property
    def delete_queue(self) -> Callable[..., Any]:
        """Delete a queue."""
        ...

    @property
    def send_message(self) -> Callable[..., Any]:
        """Send one message."""
        ...

    @property
    def receive_message(self) -> Callable[..., Any]:
        """Return a mapping with `Messages`, which is absent when no message arrives in time."""
        ...

    @property
    def delete_message(self) -> Callable[..., Any]:
        """Delete one message."""
        ...


@dataclass(slots=True)
class ControlClient:
    """A client of one control queue, and a context manager that owns the reply queue. Not safe for threads.

    `queues` is `boto3.client("sqs")`; the control queue and the reply queue prefix are outputs of the stage, such as
    `SplitControlQueueUrl` and `SplitReplyQueuePrefix`; `stage` and `capability` tag the reply queue for the sweeper.
    """

    queues: SqsClient
    control_queue_url: str
    reply_queue_prefix: str
    stage: str = field(kw_only=True)
    capability: str = field(kw_only=True)
    reply_timeout: timedelta = REPLY_TIMEOUT
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _reply_queue_url: str = field(default="", init=False)

    def __enter__(self) -> Self:
        due_at = datetime.now(UTC) + LEASE
        made: Mapping[str, Any] = self.queues.create_queue(
            QueueName=self.reply_queue_prefix + secrets.token_hex(REPLY_QUEUE_RANDOM_BYTES),
            Attributes={"MessageRetentionPeriod": str(RETENTION_SECONDS)},
            tags=lease_tags(stage=self.stage, capability=self.capability, due_at=due_at),
        )
        self._reply_queue_url = str(made["QueueUrl"])
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._on_reply_queue(self.queues.delete_queue)

    def ask(
        self, command: str, fields: Mapping[str, object] | None = None, *, timeout: timedelta | None = None
    ) -> object:
        """Send a command and return its result.

        Raises `CommandRejected`, `CommandUnavailable`, `NoControlReply`, `InvalidControlReply` and whatever `queues`
        raises.
        """
        request_id = secrets.token_hex(8)
        body = command_body(command, request_id=request_id, reply_queue_url=self._reply_queue_url, fields=fields or {})
        self.queues.send_message(QueueUrl=self.control_queue_url, MessageBody=body)
        reply = self._reply(request_id, timeout=timeout or self.reply_timeout)
        if reply is None:
            raise NoControlReply(f"the stage did not reply to {command!r} in time; it may still execute the command")
        return reply.value()

    def _reply(self, request_id: str, *, timeout: timedelta) -> ControlReply | None:
        deadline = self.clock() + timeout.total_seconds()
        while (left := deadline - self.clock()) > 0:
            replies = self._receive(wait_seconds=max(1, min(LONG_POLL_SECONDS, int(left))))
            # Other replies belong to commands that timed out earlier.
            found = next((reply for reply in replies if reply.request_id == request_id), None)
            if found is not None:
                return found
        return None

    def _receive(self, *, wait_seconds: int) -> list[ControlReply]:
        received: Mapping[str, Any] = self._on_reply_queue(
            self.queues.receive_message, MaxNumberOfMessages=10, WaitTimeSeconds=wait_seconds
        )
        messages = received.get("Messages", ())
        for message in messages:
            self.queues.delete_message(QueueUrl=self._reply_queue_url, ReceiptHandle=message["ReceiptHandle"])
        return [ControlReply.parse(message["Body"]) for message in messages]

    def _on_reply_queue(self, call: Callable[..., Any], **arguments: object) -> Any:  # noqa: ANN401 - boto3's
        """Make a call to the reply queue, which SQS may not know yet."""
        return when_usable(
            lambda: call(QueueUrl=self._reply_queue_url, **arguments),
            missing=self.queues.exceptions.QueueDoesNotExist,
            sleep=self.sleep,
        )
