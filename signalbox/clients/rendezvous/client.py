"""A Snowflake client over SQS: it sends an offer and waits for the answer as long as upstream's client does.

It needs three permissions: sqs:SendMessage on the broker queue, and sqs:GetQueueUrl and sqs:ReceiveMessage on client
queues.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.errors import RejectedError, UnavailableError
from signalbox.rendezvous.wire.reply import ClientReply

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

CLIENT_QUEUE_PREFIX = "snowflake-client-"

# As in upstream's client/lib/rendezvous_sqs.go, except that no pause follows the last try.
TRIES = 5
SECONDS_BEFORE_FIRST_TRY = 1.0
SECONDS_BETWEEN_TRIES = 1.0
LONG_POLL_SECONDS = 20
SECONDS_BETWEEN_RECEIVES = (1.0, 1.5, 2.0, 2.5)


class BrokerRefused(RejectedError):
    """Raised when the broker replies with an error; `text` is the broker's error text."""

    def __init__(self, text: str) -> None:
        super().__init__(f"the broker refused the offer: {text}")
        self.text = text


class NoAnswer(UnavailableError):
    """Raised when no reply arrives within the waiting time of upstream's client."""


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """A proxy's answer: a session description in JSON; `after` is the time since the offer was sent."""

    session_description: str
    client_id: str
    after: timedelta


def new_client_id() -> str:
    """Return a client id in upstream's format: 16 random hexadecimal characters."""
    return secrets.token_hex(8)


def _ignore(_progress: str) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class SqsRendezvous:
    """Exchanges offers for answers through the broker queue at `queue_url`; `queues` is `boto3.client("sqs")`."""

    queues: "SQSClient"
    queue_url: str
    client_queue_prefix: str = CLIENT_QUEUE_PREFIX
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def exchange(
        self,
        offer_body: str,
        *,
        client_id: str | None = None,
        on_progress: Callable[[str], None] = _ignore,
    ) -> ReceivedAnswer:
        """Send an offer (see `offer_body`) and return the answer, which takes at least one second.

        Raises `BrokerRefused`, `NoAnswer` after 6 seconds without a queue or 108 without a reply, `InvalidMessage`,
        and the exceptions of `queues`.
        """
        client_id = client_id or new_client_id()
        started = self.clock()
        self._send(offer_body, client_id)
        on_progress(f"offer sent, client id {client_id}")
        self.sleep(SECONDS_BEFORE_FIRST_TRY)
        reply_queue_url = self._find_queue(client_id)
        on_progress(f"the broker received it ({self._since(started).total_seconds():.2f} s)")
        reply = self._receive(reply_queue_url)
        if reply.error:
            raise BrokerRefused(reply.error)
        took = self._since(started)
        on_progress(f"answered ({took.total_seconds():.2f} s)")
        return ReceivedAnswer(reply.answer, client_id, took)

    def _send(self, offer_body: str, client_id: str) -> None:
        self.queues.send_message(
            QueueUrl=self.queue_url,
            MessageBody=offer_body,
            MessageAttributes={"ClientID": {"DataType": "String", "StringValue": client_id}},
        )

    def _find_queue(self, client_id: str) -> str:
        queue_name = self.client_queue_prefix + client_id
        for attempt in range(TRIES):
            self._pause(SECONDS_BETWEEN_TRIES if attempt else 0)
            # The broker creates the queue when it receives the offer, so it may not exist yet.
            with suppress(self.queues.exceptions.QueueDoesNotExist):
                return self.queues.get_queue_url(QueueName=queue_name)["QueueUrl"]
        raise NoAnswer(f"the broker created no queue {queue_name!r} within {TRIES} tries")

    def _receive(self, queue_url: str) -> ClientReply:
        for pause in (0, *SECONDS_BETWEEN_RECEIVES):
            self._pause(pause)
            received = self.queues.receive_message(
                QueueUrl=queue_url, MaxNumberOfMessages=1, WaitTimeSeconds=LONG_POLL_SECONDS
            )
            for message in received.get("Messages", ()):
                return ClientReply.parse(message["Body"].encode())
        raise NoAnswer(f"no reply arrived within {TRIES} receives")

    def _pause(self, seconds: float) -> None:
        if seconds:
            self.sleep(seconds)

    def _since(self, started: float) -> timedelta:
        return timedelta(seconds=self.clock() - started)
