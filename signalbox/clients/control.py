"""The control client: sends commands to a control queue and receives their replies from the caller's reply queue.

Needs these permissions: sqs:SendMessage on the control queue; sqs:ReceiveMessage, sqs:DeleteMessage and
sqs:ChangeMessageVisibility on the reply queue.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from signalbox.aws.shared.visibility import change_visibility
from signalbox.control.protocol import ControlReply, command_body
from signalbox.errors import UnavailableError
from signalbox.new_queues import when_usable

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

LONG_POLL_SECONDS = 20
REPLY_TIMEOUT = timedelta(seconds=60)
# After replies to other clients only, so that those get their turn, and so that a reply whose client has gone costs few
# calls; the pause doubles up to the longest.
ABANDONED = ""  # instead of the command whose client waits no more
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0


class NoControlReply(UnavailableError):
    """Raised when the stage does not reply in time; the command may have been executed."""


@dataclass(slots=True)
class ControlClient:
    """A client of one control queue, whose replies arrive in the reply queue of its caller. Not safe for threads.

    `queues` is `boto3.client("sqs")`; the two URLs are outputs of the stage, such as `SplitControlQueueUrl` and
    `SplitReplyQueueUrl`. Other clients of the caller may wait at the same queue: each takes its own replies only.
    """

    queues: "SQSClient"
    control_queue_url: str
    reply_queue_url: str
    reply_timeout: timedelta = REPLY_TIMEOUT
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _unanswered: dict[str, str] = field(default_factory=dict, init=False)
    _replies: dict[str, str] = field(default_factory=dict, init=False)

    def ask(
        self, command: str, fields: Mapping[str, object] | None = None, *, timeout: timedelta | None = None
    ) -> object:
        """Send a command and return its result, a list with all of its pages.

        Raises `CommandRejected`, `CommandUnavailable`, `NoControlReply`, `InvalidControlReply` and whatever `queues`
        raises.
        """
        reply = self._answer(self.send(command, fields), timeout=timeout)
        result = reply.value()
        while reply.next is not None and isinstance(result, list):
            reply = self._answer(self.send(command, {**(fields or {}), "after": reply.next}), timeout=timeout)
            result += cast("list[object]", reply.value())
        return result

    def send(self, command: str, fields: Mapping[str, object] | None = None) -> str:
        """Send a command and return its id, by which `result` returns its result. Raises whatever `queues` raises."""
        request_id = secrets.token_hex(8)
        body = command_body(command, request_id=request_id, fields=fields or {})
        self.queues.send_message(QueueUrl=self.control_queue_url, MessageBody=body)
        self._unanswered[request_id] = command
        return request_id

    def result(self, request_id: str, *, timeout: timedelta | None = None) -> object:
        """Return the result of a sent command, or the first page of a list. Raises the errors of `ask`."""
        return self._answer(request_id, timeout=timeout).value()

    def _answer(self, request_id: str, *, timeout: timedelta | None) -> ControlReply:
        command = self._unanswered.get(request_id)
        reply = self._replies.pop(request_id, None) or self._reply(request_id, timeout=timeout or self.reply_timeout)
        if reply is None:
            self._unanswered[request_id] = ABANDONED
            raise NoControlReply(
                f"the stage did not reply to {command!r} in time; it may still execute the command, and the log of its "
                "function `control` has what keeps it from that, such as a missing table"
            )
        return ControlReply.parse(reply)

    def _reply(self, request_id: str, *, timeout: timedelta) -> str | None:
        deadline, pause = self.clock() + timeout.total_seconds(), FIRST_PAUSE_SECONDS
        while (left := deadline - self.clock()) > 0:
            received = self._receive(wait_seconds=max(1, min(LONG_POLL_SECONDS, int(left))))
            own = [one for one in received if ControlReply.id_of(one["Body"]) in self._unanswered]
            self._return([one for one in received if one not in own])
            # Replies to commands that timed out earlier are deleted, too.
            for one in own:
                self.queues.delete_message(QueueUrl=self.reply_queue_url, ReceiptHandle=one["ReceiptHandle"])
                answered = str(ControlReply.id_of(one["Body"]))
                if self._unanswered.pop(answered, ABANDONED) != ABANDONED:
                    self._replies[answered] = one["Body"]
            if request_id in self._replies:
                return self._replies.pop(request_id)
            if received:
                self.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        return None

    def _return(self, others: "Sequence[MessageTypeDef]") -> None:
        """Make replies to other clients visible again at once."""
        receipts = [one["ReceiptHandle"] for one in others]
        change_visibility(self.queues, self.reply_queue_url, receipts, seconds=0)

    def _receive(self, *, wait_seconds: int) -> "Sequence[MessageTypeDef]":
        """Receive from the reply queue, which SQS may not know yet for a new user."""
        received = when_usable(
            lambda: self.queues.receive_message(
                QueueUrl=self.reply_queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=wait_seconds
            ),
            missing=self.queues.exceptions.QueueDoesNotExist,
            sleep=self.sleep,
        )
        return received.get("Messages", ())
