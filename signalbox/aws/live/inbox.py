"""The queue of inboxes, with a message group for each connection, and the queue of timers."""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors
from signalbox.errors import RejectedError
from signalbox.live.model.state import JOIN_TIMEOUT, MAXIMUM_TIMER, ConnectionId, Signal
from signalbox.live.session.inbox import frame_body, signal_body

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

MAXIMUM_DELAY_SECONDS = round(MAXIMUM_TIMER.total_seconds()) + 1
# A connection's id is the id of its message group, which consists of these characters.
CONNECTION = re.compile("[!-~]{1,128}")


class InvalidTimer(RejectedError):
    """Raised for a message of the queue of timers that is not a timer."""


@dataclass(frozen=True, slots=True)
class SqsInbox:
    """`Inbox`: a FIFO queue with a message group for each connection."""

    sqs: "SQSClient"
    queue_url: str

    def put_frame(self, connection: ConnectionId, text: str, *, request: str) -> None:
        """Append a frame that the client sent; the same request twice is one frame. Raises `EffectFailed`."""
        self._put(connection, frame_body(text), request)

    def notify(self, connection: ConnectionId, signal: Signal, *, request: str) -> None:
        """Append a signal; the same request twice is one signal. Raises `EffectFailed`."""
        self._put(connection, signal_body(signal), request)

    def _put(self, connection: ConnectionId, body: str, request: str) -> None:
        with translate_read_errors("the queue of inboxes"):
            self.sqs.send_message(
                QueueUrl=self.queue_url,
                MessageBody=body,
                MessageGroupId=connection,
                MessageDeduplicationId=deduplication_id(connection, request),
            )


@dataclass(frozen=True, slots=True)
class SqsTimers:
    """`Timers`: messages with a delay."""

    sqs: "SQSClient"
    queue_url: str

    def start(self, connection: ConnectionId, *, after: timedelta = JOIN_TIMEOUT) -> None:
        """Send a timer that is received a little after a time of at most `MAXIMUM_TIMER`. Raises `EffectFailed`."""
        body = json.dumps({"connection": connection})
        delay = min(max(ceil(after.total_seconds()), 0) + 1, MAXIMUM_DELAY_SECONDS)
        with translate_read_errors("the queue of timers"):
            self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body, DelaySeconds=delay)


def deduplication_id(connection: ConnectionId, what: str) -> str:
    """Return the deduplication id of a message in a connection's message group."""
    return hashlib.sha256(f"{connection}\n{what}".encode()).hexdigest()


def timed_connection(body: str) -> ConnectionId:
    """Return the connection of a timer's message. Raises `InvalidTimer`."""
    try:
        connection = json.loads(body)["connection"]
        if CONNECTION.fullmatch(connection):
            return ConnectionId(connection)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidTimer(f"a message of {len(body)} characters is not a timer: {error!r}") from error
    raise InvalidTimer(f"connection: expected 1 to 128 characters of a message group id, not {connection!r}")
