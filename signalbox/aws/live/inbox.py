"""The queue of inboxes, a message group for each connection, and the queue of timers."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import look
from signalbox.errors import RejectedError
from signalbox.live.session.inbox import frame_body, told_body
from signalbox.live.session.state import JOIN_TIMEOUT, ConnectionId, Elapsed, Killed, Lost, RightsChanged

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

DELAY_SECONDS = round(JOIN_TIMEOUT.total_seconds()) + 1
# Of what a message group's name may be, which a connection's id is.
CONNECTION = re.compile("[!-~]{1,128}")


class InvalidTimer(RejectedError):
    """Raised when a message of the queue of timers is none."""


@dataclass(frozen=True, slots=True)
class SqsInbox:
    """`Inbox`."""

    sqs: "SQSClient"
    queue_url: str

    def put_frame(self, connection: ConnectionId, text: str, *, request: str) -> None:
        """Put what a client sent behind what is there; the same request twice is one frame. Raises `EffectFailed`."""
        self._put(connection, frame_body(text), request)

    def tell(self, connection: ConnectionId, told: Lost | Elapsed | Killed | RightsChanged, *, request: str) -> None:
        """Put something else that is heard of a connection behind what is there. Raises `EffectFailed`."""
        self._put(connection, told_body(told), request)

    def _put(self, connection: ConnectionId, body: str, request: str) -> None:
        deduplication = hashlib.sha256(f"{connection}\n{request}".encode()).hexdigest()
        with look("the queue of inboxes"):
            self.sqs.send_message(
                QueueUrl=self.queue_url,
                MessageBody=body,
                MessageGroupId=connection,
                MessageDeduplicationId=deduplication,
            )


@dataclass(frozen=True, slots=True)
class SqsTimers:
    """`Timers`: messages that come after a while."""

    sqs: "SQSClient"
    queue_url: str

    def start(self, connection: ConnectionId) -> None:
        """Have the inbox told in a little more than `JOIN_TIMEOUT` that time has passed. Raises `EffectFailed`."""
        body = json.dumps({"connection": connection})
        with look("the queue of timers"):
            self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body, DelaySeconds=DELAY_SECONDS)


def timed_connection(body: str) -> ConnectionId:
    """Return the connection of a timer that has run out. Raises `InvalidTimer`."""
    try:
        connection = json.loads(body)["connection"]
        if CONNECTION.fullmatch(connection):
            return ConnectionId(connection)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidTimer(f"a message of {len(body)} characters is no timer: {error!r}") from error
    raise InvalidTimer(f"connection: expected up to 128 characters that a message group may have, not {connection!r}")
