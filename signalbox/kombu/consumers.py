"""Consumers of a connection: a thread for each queue polls SQS, and an inbox holds what is not delivered yet."""

import heapq
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amqp.exceptions import ConsumerCancelled, NotFound

from signalbox.kombu.errors import amqp_errors
from signalbox.kombu.messages import ATTRIBUTES, RECEIVED, Received
from signalbox.kombu.receipts import ChannelReceipt, Receipts
from signalbox.new_queues import when_usable
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from signalbox.kombu.channel import Channel

LONG_POLL_SECONDS = 20  # the maximum of SQS


@dataclass(eq=False, slots=True)
class ChannelConsumer:
    """A consumer of a channel. `unsettled` counts its messages that are neither acknowledged nor released."""

    channel: "Channel"
    queue: str
    no_ack: bool
    callback: Callable[[Any], object]
    unsettled: int = 0

    @property
    def room(self) -> int:
        """The number of messages that the consumer may receive now, by the prefetch count of its channel."""
        limit = self.channel.qos.prefetch_count if not self.no_ack else 0
        return min(MAXIMUM_ENTRIES, (limit or MAXIMUM_ENTRIES) - self.unsettled)


@dataclass(order=True, slots=True)
class ConsumerDelivery:
    """A message for a consumer, in the order of deliveries: the lowest rank, that is the highest priority, first."""

    rank: int
    sent_at: int
    tag: int
    consumer: ChannelConsumer = field(compare=False)
    payload: dict[str, Any] = field(compare=False)


@dataclass(slots=True)
class ReceivedMessages:
    """The messages of a connection that were received and not delivered. Thread-safe."""

    changed: threading.Condition
    error: Exception | None = None
    _waiting: list[ConsumerDelivery] = field(default_factory=list)
    _bell: tuple[socket.socket, socket.socket] = field(default_factory=socket.socketpair)

    def __post_init__(self) -> None:
        for end in self._bell:
            end.settimeout(0)

    @property
    def readable(self) -> socket.socket:
        """The socket that an event loop watches: it is readable while something may wait here."""
        return self._bell[0]

    def put(self, delivery: ConsumerDelivery) -> None:
        """Add a message."""
        with self.changed:
            heapq.heappush(self._waiting, delivery)
            self._ring()

    def fail(self, error: Exception) -> None:
        """Report an error to the program, once."""
        with self.changed:
            self.error = error
            self._ring()

    def take(self, timeout: float | None) -> ConsumerDelivery:
        """Return the first message; wait for one. Raises `TimeoutError`, and an error that was reported."""
        with self.changed:
            if not self.changed.wait_for(lambda: self._waiting or self.error, timeout):
                raise TimeoutError("no message came in time")
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            return heapq.heappop(self._waiting)

    def take_all(self, consumer: ChannelConsumer) -> list[ConsumerDelivery]:
        """Remove and return the messages of a consumer, in order."""
        with self.changed:
            found = sorted(one for one in self._waiting if one.consumer is consumer)
            self._waiting = [one for one in self._waiting if one.consumer is not consumer]
            heapq.heapify(self._waiting)
            return found

    def silence(self) -> None:
        """Make the socket unreadable until something new comes."""
        with suppress(BlockingIOError):
            while self._bell[0].recv(4096):
                pass

    def close(self) -> None:
        """Close the socket."""
        with self.changed:
            for end in self._bell:
                end.close()

    def _ring(self) -> None:
        self.changed.notify_all()
        with suppress(OSError):  # it is full, and readable anyway, or closed
            self._bell[1].send(b"!")


@dataclass(eq=False, slots=True)
class Receiver:
    """Receives from one queue for one consumer after another, and ends when it has none."""

    queue_url: str
    inbox: ReceivedMessages
    receipts: Receipts
    consumer: ChannelConsumer | None
    wait_seconds: int = LONG_POLL_SECONDS
    is_ended: bool = False

    def start(self) -> None:
        """Receive in a thread."""
        # A daemon: a poll lasts up to 20 seconds, for which no program should wait at its end.
        threading.Thread(target=self._run, name="signalbox-receiver", daemon=True).start()

    def _run(self) -> None:
        while room := self._room():
            try:
                messages = receive(self.receipts, self.queue_url, maximum=room, wait_seconds=self.wait_seconds)
            except Exception as error:  # noqa: BLE001 - the program gets it, as from its own call
                self._fail(ConsumerCancelled(str(error)) if isinstance(error, NotFound) else error)
            else:
                self._put(messages)

    def _room(self) -> int:
        """Return how many messages to receive, as soon as it is one; 0 when there is no consumer any more."""
        with self.inbox.changed:
            self.inbox.changed.wait_for(lambda: self.consumer is None or self.consumer.room > 0)
            self.is_ended = self.consumer is None
            return self.consumer.room if self.consumer else 0

    def _fail(self, error: Exception) -> None:
        with self.inbox.changed:
            if self.consumer is not None:
                self.consumer = None
                self.inbox.fail(error)

    def _put(self, messages: Sequence[Received]) -> None:
        with self.inbox.changed:
            consumer = self.consumer
            channel = consumer.channel if consumer else None
            tags = [
                self.receipts.add(ChannelReceipt(self.queue_url, one.receipt, channel, consumer)) for one in messages
            ]
            if consumer is not None:
                consumer.unsettled += len(messages)
                for tag, one in zip(tags, messages, strict=True):
                    payload = with_tag(one.payload, tag)
                    self.inbox.put(ConsumerDelivery(-one.priority, one.sent_at, tag, consumer, payload))
                return
        self.receipts.release(tags)


def with_tag(payload: dict[str, Any], tag: int) -> dict[str, Any]:
    """Return a message with the delivery tag of this delivery: copies of one publication begin with one tag."""
    return {**payload, "properties": {**payload["properties"], "delivery_tag": tag}}


def receive(receipts: Receipts, queue_url: str, *, maximum: int, wait_seconds: int) -> list[Received]:
    """Return messages of a queue; delete those that have expired. Raises errors of AMQP."""

    def call() -> Mapping[str, Any]:
        return receipts.sqs.receive_message(
            QueueUrl=queue_url,
            MaxNumberOfMessages=maximum,
            WaitTimeSeconds=wait_seconds,
            VisibilityTimeout=receipts.hold_seconds,
            MessageAttributeNames=list(ATTRIBUTES),
            MessageSystemAttributeNames=[*RECEIVED],
        )

    with amqp_errors(f"receive from {queue_url}"):
        reply = when_usable(call, missing=receipts.sqs.exceptions.QueueDoesNotExist, sleep=time.sleep)
    found = [Received.parse(one, receipts.names) for one in reply.get("Messages", ())]
    now = time.time() * 1000
    late = [one for one in found if one.expires_at <= now]
    receipts.ack([receipts.add(ChannelReceipt(queue_url, one.receipt, None)) for one in late])
    return [one for one in found if one.expires_at > now]
