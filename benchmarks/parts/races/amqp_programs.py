"""The programs of RabbitMQ, by the package `amqp`: a queue or a stream for each subscriber of a topic exchange."""

import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import amqp

from benchmarks.parts.races.accounts import Delivery

EXCHANGE = "races"
PREFETCH = 100
PAUSE_SECONDS, CALL_SECONDS = 0.2, 10.0
# What a client meets when its connection is cut, or the server starts.
PASSING = (OSError, amqp.exceptions.AMQPError)
PERSISTENT = 2
CONFIRM_SECONDS = 30  # after a restart, some confirms of messages in quorum queues never come


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """The queue of a subscriber: arguments of a durable one, or None for an exclusive one without acknowledgements."""

    arguments: Mapping[str, str] | None = None

    @property
    def is_stream(self) -> bool:
        """Return whether the subscriber reads a stream, from its first message and then from its own offset."""
        return (self.arguments or {}).get("x-queue-type") == "stream"


EXCLUSIVE = QueueSetting()
QUORUM = QueueSetting({"x-queue-type": "quorum"})
STREAM = QueueSetting({"x-queue-type": "stream"})


def connection(url: str, *, confirm: bool = False) -> Any:  # noqa: ANN401 - the package has no types
    """Return an open connection."""
    host = urlsplit(url).netloc
    opened = amqp.Connection(host, confirm_publish=confirm, connect_timeout=CALL_SECONDS, read_timeout=CALL_SECONDS)
    opened.connect()
    return opened


def declare(channel: Any, setting: QueueSetting, name: str, topics: Sequence[str]) -> str:  # noqa: ANN401
    """Declare a subscriber's queue with its bindings, and return its name."""
    channel.exchange_declare(EXCHANGE, "topic", durable=True, auto_delete=False)
    if setting.arguments is None:
        queue = channel.queue_declare(exclusive=True).queue
    else:
        name = f"{name}.{setting.arguments['x-queue-type']}"
        queue = channel.queue_declare(name, durable=True, auto_delete=False, arguments=setting.arguments).queue
    for topic in topics:
        channel.queue_bind(queue, EXCHANGE, topic)
    return str(queue)


@dataclass(slots=True)
class AmqpReceiver:
    """A subscriber that declares its queue again after each loss of its connection."""

    url: str
    name: str
    topics: Sequence[str]
    setting: QueueSetting
    losses: int = 0
    _connection: Any = None
    _next_offset: int | None = None
    _received: deque[Any] = field(default_factory=deque)

    def subscribe(self) -> None:
        """Connect, declare and consume."""
        while self._connection is None:
            try:
                self._connect()
            except PASSING:
                self.close()
                time.sleep(PAUSE_SECONDS)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Return the next message, after its acknowledgement."""
        try:
            if not self._received:
                with suppress(socket.timeout):
                    self._connection.drain_events(timeout=timeout_seconds)
            if self._received:
                return self._delivered(self._received.popleft())
        except PASSING:
            self.losses += 1
            self.close()
            self.subscribe()
        return None

    def close(self) -> None:
        """Disconnect; messages without acknowledgement are the queue's again."""
        if self._connection is not None:
            with suppress(*PASSING):
                self._connection.close()
        self._connection = None
        self._received.clear()

    def _connect(self) -> None:
        opened = connection(self.url)
        channel = opened.channel()
        channel.basic_qos(0, PREFETCH, a_global=False)
        queue = declare(channel, self.setting, self.name, self.topics)
        start = {"x-stream-offset": "first" if self._next_offset is None else self._next_offset}
        channel.basic_consume(
            queue,
            no_ack=self.setting.arguments is None,
            callback=self._received.append,
            arguments=start if self.setting.is_stream else None,
        )
        self._connection = opened

    def _delivered(self, message: Any) -> Delivery:  # noqa: ANN401
        found = Delivery(message.delivery_info["routing_key"], message.properties["message_id"], int(message.body))
        if self.setting.arguments is not None:
            with suppress(*PASSING):  # the application has the message; the next call finds the connection lost
                message.channel.basic_ack(message.delivery_info["delivery_tag"])
        if self.setting.is_stream:
            self._next_offset = message.headers["x-stream-offset"] + 1
        return found


@dataclass(slots=True)
class AmqpSender:
    """A publisher that publishes a message again, with its id, when it knows that it may have failed."""

    url: str
    is_confirmed: bool
    _connection: Any = None
    _channel: Any = None

    def publish(self, topic: str, number: int) -> None:
        """Publish; with confirms, until the server has confirmed it."""
        properties = {"message_id": f"{topic}-{number}", **({"delivery_mode": PERSISTENT} if self.is_confirmed else {})}
        while True:
            try:
                if self._channel is None:
                    self._connection = connection(self.url, confirm=self.is_confirmed)
                    self._channel = self._connection.channel()
                    self._channel.exchange_declare(EXCHANGE, "topic", durable=True, auto_delete=False)
                message = amqp.Message(str(number), **properties)
                self._channel.basic_publish(message, EXCHANGE, topic, confirm_timeout=CONFIRM_SECONDS)
            except PASSING:
                self.close()
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            with suppress(*PASSING):
                self._connection.close()
        self._connection = self._channel = None
