"""The consumer of a queue: receives messages, extends their visibility time-out, and releases unprocessed ones."""

import base64
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from signalbox.aws.shared.visibility import change_visibility, tens
from signalbox.clients.exchange.errors import resource_errors
from signalbox.exchange.messages.deliveries import DeliveredMessage, InvalidDelivery
from signalbox.exchange.model.records import DEFAULT_PREFETCH, ResourceRef
from signalbox.messages import Message, NotAMessage
from signalbox.new_queues import when_usable
from signalbox.sarracenia.rights.names import UserName
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

LONG_POLL_SECONDS = 20  # the maximum of SQS
# The time until other consumers get the messages of a dead consumer; a running one extends it.
HOLD = timedelta(seconds=60)
HEARTBEATS_PER_HOLD = 3  # one of them may fail
PATIENCE_SECONDS = 5.0  # for a last heartbeat at the end

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A received message; `receipt` acknowledges or releases it."""

    delivered: DeliveredMessage
    receipt: str = field(repr=False)
    times_received: int = 1


@dataclass(slots=True)
class Consumer:
    """Receives messages of one queue, at most `prefetch` unacknowledged ones at a time. Thread-safe."""

    sqs: "SQSClient"
    resource: ResourceRef
    queue_url: str
    user: UserName | None = None
    prefetch: int = DEFAULT_PREFETCH
    hold: timedelta = HOLD
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    expired: int = 0
    """The number of messages that exceeded their TTL and were deleted unread."""
    unreadable: int = 0
    """The number of messages that no exchange sent; the queue's redrive moves them to its dead-letter queue."""
    _held: dict[str, ReceivedMessage] = field(default_factory=dict)
    _change: threading.Condition = field(default_factory=threading.Condition)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Yield messages as they arrive, without end."""
        while True:
            yield from self.receive()

    @property
    def unacknowledged(self) -> int:
        """Return the number of received messages that are not acknowledged."""
        with self._change:
            return len(self._held)

    def receive(self, *, wait_seconds: int = LONG_POLL_SECONDS) -> list[ReceivedMessage]:
        """Return messages as soon as one arrives; none after the wait, or while `prefetch` messages are unacknowledged.

        Raises `NotFound` and `NotPermitted`.
        """
        room = self._room(wait_seconds)
        found: list[ReceivedMessage] = []
        while room > 0:
            wanted = min(MAXIMUM_ENTRIES, room)
            received = self._received(wanted, wait_seconds=0 if found else wait_seconds)
            found += self._taken(received)
            room -= len(received)
            if len(received) < wanted:
                break
        return found

    def ack(self, *taken: ReceivedMessage) -> None:
        """Acknowledge messages: deletes them from the queue."""
        self._forget(taken)
        for part in tens(taken):
            answer = self.sqs.delete_message_batch(
                QueueUrl=self.queue_url,
                Entries=[{"Id": str(number), "ReceiptHandle": one.receipt} for number, one in enumerate(part)],
            )
            for failure in answer.get("Failed", ()):
                # It is delivered again, which every consumer must expect.
                logger.warning("a message was not deleted: %s", failure.get("Message"))

    def release(self, *messages: ReceivedMessage) -> None:
        """Make messages visible to other consumers at once."""
        self._forget(messages)
        self._change_visibility(messages, seconds=0)

    def close(self) -> None:
        """Release all unacknowledged messages."""
        self.release(*self._all_held())

    def extend(self) -> None:
        """Extend the visibility time-out of all unacknowledged messages."""
        self._change_visibility(self._all_held(), seconds=round(self.hold.total_seconds()))

    def _room(self, wait_seconds: int) -> int:
        with self._change:
            self._change.wait_for(lambda: len(self._held) < self.prefetch, timeout=wait_seconds)
            return self.prefetch - len(self._held)

    def _received(self, wanted: int, *, wait_seconds: int) -> Sequence[Mapping[str, Any]]:
        with resource_errors(self.resource, self.sqs, user=self.user, what="consume from"):
            receive = partial(
                self.sqs.receive_message,
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=wanted,
                WaitTimeSeconds=wait_seconds,
                VisibilityTimeout=round(self.hold.total_seconds()),
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
            # The queue may have been declared a moment ago.
            missing = self.sqs.exceptions.QueueDoesNotExist
            received: Mapping[str, Any] = when_usable(receive, missing=missing, sleep=self.sleep)
        messages: Sequence[Mapping[str, Any]] = received.get("Messages", ())
        return messages

    def _taken(self, received: Iterable[Mapping[str, Any]]) -> list[ReceivedMessage]:
        fresh: list[ReceivedMessage] = []
        late: list[ReceivedMessage] = []
        for one in received:
            try:
                taken = _read(one)
            except (NotAMessage, InvalidDelivery) as problem:
                logger.warning("message %s is left to be a dead letter: %s", one.get("MessageId"), problem)
                self.unreadable += 1
                continue
            (late if taken.delivered.has_expired(self.now()) else fresh).append(taken)
        with self._change:
            self._held |= {one.receipt: one for one in fresh}
        self.expired += len(late)
        self.ack(*late)
        return fresh

    def _all_held(self) -> tuple[ReceivedMessage, ...]:
        with self._change:
            return tuple(self._held.values())

    def _forget(self, taken: Iterable[ReceivedMessage]) -> None:
        with self._change:
            for one in taken:
                self._held.pop(one.receipt, None)
            self._change.notify_all()

    def _change_visibility(self, taken: Sequence[ReceivedMessage], *, seconds: int) -> None:
        receipts = [one.receipt for one in taken]
        change_visibility(self.sqs, self.queue_url, receipts, seconds=seconds)


@contextmanager
def heartbeat(send: Callable[[], None], *, every: timedelta) -> Iterator[None]:
    """Call a function repeatedly in a thread while the context lasts."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(every.total_seconds()):
            try:
                send()
            except Exception as error:  # noqa: BLE001 - whatever the client that was passed in may raise
                # The next call may succeed; if none does, the consumer's own calls fail too, and raise.
                logger.warning("a consumer's sign of life failed: %s", error)

    # A daemon: a call that hangs must not keep the program running.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_SECONDS)


def _read(received: Mapping[str, Any]) -> ReceivedMessage:
    attributes = {name: _with_base64(one) for name, one in received.get("MessageAttributes", {}).items()}
    message = Message.parse({**received, "MessageAttributes": attributes})
    times = int(message.system_attributes.get("ApproximateReceiveCount", "1"))
    return ReceivedMessage(DeliveredMessage.parse(message), received["ReceiptHandle"], times)


def _with_base64(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if "BinaryValue" not in attribute:
        return {**attribute}
    return {**attribute, "BinaryValue": base64.b64encode(attribute["BinaryValue"]).decode()}
