"""A consumer of a queue: takes messages, keeps others from getting them meanwhile, and gives back what is not done."""

import base64
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from signalbox.exchange.control.errors import HasExceptions, resource_errors
from signalbox.exchange.messages.properties import DeliveredMessage, InvalidDelivery
from signalbox.exchange.model.records import DEFAULT_PREFETCH, ResourceRef
from signalbox.messages import InvalidMessage, Message
from signalbox.sarracenia.rights.names import UserName
from signalbox.sending import MAXIMUM_ENTRIES

LONG_POLL_SECONDS = 20  # SQS: the longest
# How long others do not get a message after its consumer died; one that lives holds it for as long as it works on it.
HOLD = timedelta(seconds=60)
HEARTBEATS_PER_HOLD = 3  # so that one may fail
PATIENCE_SECONDS = 5.0  # with a last send, when all is over

logger = logging.getLogger(__name__)


class ConsumerSqs(HasExceptions, Protocol):
    """What a consumer needs of boto3's SQS client."""

    @property
    def receive_message(self) -> Callable[..., Any]:
        """Return a mapping with `Messages`, or without if none came in time."""
        ...

    @property
    def delete_message_batch(self) -> Callable[..., Any]:
        """Delete up to ten messages; return a mapping with those that `Failed`."""
        ...

    @property
    def change_message_visibility_batch(self) -> Callable[..., Any]:
        """Say how long up to ten messages are still kept from others."""
        ...


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message that a consumer has taken, and with `receipt` acknowledges or gives back."""

    delivered: DeliveredMessage
    receipt: str = field(repr=False)
    times_received: int = 1


@dataclass(slots=True)
class Consumer:
    """Takes messages of one queue, at most `prefetch` that are not acknowledged. Threads may share it."""

    sqs: ConsumerSqs
    resource: ResourceRef
    queue_url: str
    user: UserName | None = None
    prefetch: int = DEFAULT_PREFETCH
    hold: timedelta = HOLD
    now: Callable[[], float] = time.time
    expired: int = 0
    """Messages that were older than they may get, and were deleted unseen."""
    unreadable: int = 0
    """Messages that came through no exchange: they are left to the queue, which makes dead letters of them."""
    _held: dict[str, ReceivedMessage] = field(default_factory=dict)
    _change: threading.Condition = field(default_factory=threading.Condition)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Yield messages as they come, for ever."""
        while True:
            yield from self.receive()

    @property
    def unacknowledged(self) -> int:
        """Return how many messages are taken and not acknowledged."""
        with self._change:
            return len(self._held)

    def receive(self, *, wait_seconds: int = LONG_POLL_SECONDS) -> list[ReceivedMessage]:
        """Return messages, at least one if any comes in time; none while all that may be taken is not acknowledged.

        Raises `NotThere` and `NotPermitted`.
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
        """Say that messages are done: nobody gets them again."""
        self._forget(taken)
        for part in _tens(taken):
            entries = [{"Id": str(number), "ReceiptHandle": one.receipt} for number, one in enumerate(part)]
            answer: Mapping[str, Any] = self.sqs.delete_message_batch(QueueUrl=self.queue_url, Entries=entries)
            for failure in answer.get("Failed", ()):
                # It comes again: nobody may rely on less than that.
                logger.warning("a message was not deleted: %s", failure.get("Message"))

    def release(self, *messages: ReceivedMessage) -> None:
        """Let others have messages at once."""
        self._forget(messages)
        self._change_visibility(messages, seconds=0)

    def close(self) -> None:
        """Give back everything that is not acknowledged."""
        self.release(*self._all_held())

    def extend(self) -> None:
        """Keep others from what is being worked on, for as long again."""
        self._change_visibility(self._all_held(), seconds=round(self.hold.total_seconds()))

    def _room(self, wait_seconds: int) -> int:
        with self._change:
            self._change.wait_for(lambda: len(self._held) < self.prefetch, timeout=wait_seconds)
            return self.prefetch - len(self._held)

    def _received(self, wanted: int, *, wait_seconds: int) -> Sequence[Mapping[str, Any]]:
        with resource_errors(self.resource, self.sqs, user=self.user, what="consume from"):
            received: Mapping[str, Any] = self.sqs.receive_message(
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=wanted,
                WaitTimeSeconds=wait_seconds,
                VisibilityTimeout=round(self.hold.total_seconds()),
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        messages: Sequence[Mapping[str, Any]] = received.get("Messages", ())
        return messages

    def _taken(self, received: Iterable[Mapping[str, Any]]) -> list[ReceivedMessage]:
        fresh: list[ReceivedMessage] = []
        late: list[ReceivedMessage] = []
        for one in received:
            try:
                taken = _read(one)
            except (InvalidMessage, InvalidDelivery) as problem:
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
        for part in _tens(taken):
            entries = [
                {"Id": str(number), "ReceiptHandle": one.receipt, "VisibilityTimeout": seconds}
                for number, one in enumerate(part)
            ]
            self.sqs.change_message_visibility_batch(QueueUrl=self.queue_url, Entries=entries)


@contextmanager
def heartbeat(send: Callable[[], None], *, every: timedelta) -> Iterator[None]:
    """Do something again and again meanwhile, in a thread of its own."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(every.total_seconds()):
            try:
                send()
            except Exception as error:  # noqa: BLE001 - whatever the client that was passed in may raise
                # The next send may work; if none does, the consumer's own calls fail as well, and tell.
                logger.warning("a consumer's sign of life failed: %s", error)

    # A daemon: a call that hangs must not keep the program from ending.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_SECONDS)


def _tens(taken: Sequence[ReceivedMessage]) -> Iterator[Sequence[ReceivedMessage]]:
    for start in range(0, len(taken), MAXIMUM_ENTRIES):
        yield taken[start : start + MAXIMUM_ENTRIES]


def _read(received: Mapping[str, Any]) -> ReceivedMessage:
    attributes = {name: _with_base64(one) for name, one in received.get("MessageAttributes", {}).items()}
    message = Message.parse({**received, "MessageAttributes": attributes})
    times = int(message.system_attributes.get("ApproximateReceiveCount", "1"))
    return ReceivedMessage(DeliveredMessage.parse(message), received["ReceiptHandle"], times)


def _with_base64(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if "BinaryValue" not in attribute:
        return {**attribute}
    return {**attribute, "BinaryValue": base64.b64encode(attribute["BinaryValue"]).decode()}
