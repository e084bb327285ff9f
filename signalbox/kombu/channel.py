"""The channel: AMQP's methods as kombu calls them, on a stage."""

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from amqp import exceptions as amqp
from amqp.basic_message import Message
from amqp.protocol import queue_declare_ok_t
from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from kombu.utils.json import dumps
from kombu.utils.uuid import uuid

from signalbox.exchange.control.command_reader import MAXIMUM_RECEIVES, MINIMUM_EXPIRES_SECONDS
from signalbox.kombu.consumers import ChannelConsumer, ConsumerDelivery, receive, with_tag
from signalbox.kombu.errors import amqp_errors
from signalbox.kombu.names import DEFAULT, pattern_of
from signalbox.kombu.receipts import ChannelReceipt
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from signalbox.kombu.stage import BrokerStage
    from signalbox.kombu.transport import Transport

EXCHANGE_TYPES = frozenset({"direct", "topic", "fanout"})
EXPIRES, MESSAGE_TTL, DELIVERY_LIMIT = "x-expires", "x-message-ttl", "x-delivery-limit"
PRIORITIES = "x-max-priority"  # accepted, since every message has a priority
# py-amqp does not send others either, such as those that Celery's signals pass on.
PROPERTIES = {"delivery_info", *(name for name, _type in Message.PROPERTIES)}
NO_ROUTE = 312
ASK_ALL_SECONDS = 1  # SQS answers from all of its servers only if it may wait

Arguments = Mapping[str, Any] | None
logger = logging.getLogger(__name__)


class Channel(virtual.Channel):  # type: ignore[misc]  # kombu has no types
    """A channel of a connection to a stage."""

    connection: "Transport | None"
    supports_fanout = True

    def __init__(self, connection: "Transport", **options: object) -> None:
        super().__init__(connection, **options)
        self.events: defaultdict[str, set[Callable[..., object]]] = defaultdict(set)
        self._consuming: dict[str, ChannelConsumer] = {}

    @property
    def stage(self) -> "BrokerStage":
        """The stage of the connection."""
        return self._transport.stage

    @property
    def _transport(self) -> "Transport":
        if self.connection is None:
            raise amqp.RecoverableConnectionError("the channel is closed")
        return self.connection

    def exchange_declare(
        self, exchange: str = "", type: str = "direct", arguments: Arguments = None, passive: bool = False, **_: Any
    ) -> None:
        """Declare an exchange. All are durable. Raises `NotFound` for a passive declaration of one that is missing."""
        kind = type or "direct"
        if kind not in EXCHANGE_TYPES:
            problem = f"exchange {exchange!r}: type {kind!r} is not one of {sorted(EXCHANGE_TYPES)}"
            raise amqp.AMQPNotImplementedError(problem)
        if self._transport.kinds.setdefault(exchange, kind) != kind:
            raise amqp.PreconditionFailed(f"exchange {exchange!r} is of type {self._transport.kinds[exchange]!r}")
        if passive:
            self.stage.check_exchange(exchange)
            return
        names, alternate = self.stage.namespace, (arguments or {}).get("alternate-exchange")
        if alternate:
            self.stage.settle()  # it must exist
        fields = {"exchange": names.exchange(exchange), "alternate": alternate and names.exchange(alternate)}
        self.stage.send("declare_exchange", fields)

    def exchange_delete(self, exchange: str, if_unused: bool = False, **_: Any) -> None:
        """Delete an exchange; with `if_unused`, only without bindings."""
        name = self.stage.namespace.exchange(exchange)
        self.stage.ask("delete_exchange", {"exchange": name, "force": not if_unused})
        self._transport.kinds.pop(exchange, None)

    def exchange_bind(self, destination: str, source: str = "", routing_key: str = "", **_: Any) -> None:
        """Bind an exchange to another one."""
        self.stage.bind(self._binding(source, routing_key, destination=destination))

    def exchange_unbind(self, destination: str, source: str = "", routing_key: str = "", **_: Any) -> None:
        """Remove a binding of an exchange to another one."""
        self.stage.ask("unbind", self._binding(source, routing_key, destination=destination))

    def queue_declare(
        self, queue: str = "", arguments: Arguments = None, passive: bool = False, **flags: Any
    ) -> queue_declare_ok_t:
        """Declare a queue and return its name and size; the size of a queue that may be new is 0.

        Queues are durable. One with `exclusive` or `auto_delete` expires a minute after its last use, or later.
        """
        name = queue or f"amq.gen-{uuid()}"
        if passive:
            return queue_declare_ok_t(name, self.stage.size(name), 0)
        expires = bool(flags.get("exclusive") or flags.get("auto_delete"))
        self.stage.send("declare_queue", self._queue_fields(name, arguments or {}, expires=expires))
        if self.stage.client.user is not None:
            binding = self._binding("", name, queue=name)
            self.stage.send("declare_exchange", {"exchange": binding["exchange"]})
            self.stage.bind(binding)
        self.stage.settle()
        return queue_declare_ok_t(name, 0, 0)

    def prepare_queue_arguments(self, arguments: Arguments, **options: Any) -> Any:
        """Return the arguments of a queue with RabbitMQ's names."""
        return to_rabbitmq_queue_arguments(arguments or {}, **options)

    def queue_bind(self, queue: str, exchange: str = "", routing_key: str = "", **_: Any) -> None:
        """Bind a queue to an exchange; the default exchange has bindings of its own."""
        if exchange:
            self.stage.bind(self._binding(exchange, routing_key, queue=queue))

    def queue_unbind(self, queue: str, exchange: str = "", routing_key: str = "", **_: Any) -> None:
        """Remove a binding."""
        self.stage.ask("unbind", self._binding(exchange, routing_key, queue=queue))

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **_: Any) -> int:
        """Delete a queue; return about how many messages it had. With `if_unused`, not while this channel uses it."""
        if if_unused and any(one.queue == queue for one in self._consuming.values()):
            raise amqp.PreconditionFailed(f"queue {queue!r} has consumers")
        reply = self.stage.ask("delete_queue", {"queue": self.stage.namespace.queue(queue), "if_empty": if_empty})
        return int(reply.get("lost") or 0)

    def queue_purge(self, queue: str, **_: Any) -> int:
        """Delete all waiting messages and return their number."""
        self.stage.settle()
        receipts, url, purged = self._transport.receipts, self.stage.queue_url(queue), 0
        while found := receive(receipts, url, maximum=MAXIMUM_ENTRIES, wait_seconds=ASK_ALL_SECONDS):
            receipts.ack([receipts.add(ChannelReceipt(url, one.receipt, self)) for one in found])
            with amqp_errors(f"purge queue {queue!r}"):
                receipts.flush()
            purged += len(found)
        return purged

    def after_reply_message_received(self, queue: str) -> None:
        """Keep a reply queue: SQS refuses the name of a deleted queue for a minute, and the queue expires anyway."""

    def basic_publish(
        self, message: dict[str, Any], exchange: str = "", routing_key: str = "", mandatory: bool = False, **_: Any
    ) -> None:
        """Publish a message, which is stored when this returns. One that no queue gets is dropped, or returned."""
        message["properties"] = {name: one for name, one in message["properties"].items() if name in PROPERTIES}
        self._inplace_augment_message(message, exchange, routing_key)
        if mandatory and not self.stage.reaches_a_queue(exchange, routing_key):
            self._return(message, exchange, routing_key)
            return
        try:
            self.stage.publish(dumps(message), exchange=exchange, routing_key=routing_key)
        except amqp.NotFound:
            if exchange:
                raise
            if mandatory:
                self._return(message, exchange, routing_key)

    def encode_body(self, body: Any, encoding: str | None = None) -> Any:
        """Return a body as text; only bytes are encoded."""
        return (body, "utf-8") if isinstance(body, str) else super().encode_body(body, encoding)

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Callable[[Any], object], consumer_tag: str, **_: Any
    ) -> None:
        """Receive messages of a queue from now on."""
        self.stage.settle()
        consumer = ChannelConsumer(self, queue, no_ack, callback)
        self._consuming[consumer_tag] = consumer
        self._transport.receive_for(consumer, self.stage.queue_url(queue))

    def basic_cancel(self, consumer_tag: str) -> None:
        """Stop a consumer. Messages received for it go to a program without an event loop, else to other consumers."""
        consumer = self._consuming.pop(consumer_tag, None)
        if consumer is None:
            return
        waiting = self._transport.stop_receiving(consumer)
        if self._transport.loop is not None or self.closed:
            self._transport.receipts.release(one.tag for one in waiting)
        else:
            for delivery in waiting:
                self.deliver(delivery)

    def deliver(self, delivery: ConsumerDelivery) -> None:
        """Pass a message to its consumer."""
        if delivery.consumer.no_ack:
            self._transport.receipts.ack([delivery.tag])
        delivery.consumer.callback(self.Message(delivery.payload, channel=self))

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> Any:
        """Return a message of a queue, or None if there is none within a second."""
        self.stage.settle()
        receipts, url = self._transport.receipts, self.stage.queue_url(queue)
        for found in receive(receipts, url, maximum=1, wait_seconds=ASK_ALL_SECONDS):
            tag = receipts.add(ChannelReceipt(url, found.receipt, self))
            if no_ack:
                receipts.ack([tag])
            return self.Message(with_tag(found.payload, tag), channel=self)
        return None

    def basic_ack(self, delivery_tag: int, multiple: bool = False) -> None:
        """Acknowledge a message, or all up to it."""
        receipts = self._transport.receipts
        receipts.ack(receipts.of_channel(self, up_to=delivery_tag) if multiple else [delivery_tag])

    def basic_reject(self, delivery_tag: int, requeue: bool = False) -> None:
        """Make a message available to all consumers at once, or delete it."""
        (self._transport.receipts.release if requeue else self._transport.receipts.ack)([delivery_tag])

    def basic_recover(self, requeue: bool = False) -> None:
        """Make all unacknowledged messages of the channel available to all consumers."""
        if not requeue:
            raise amqp.AMQPNotImplementedError("basic_recover: messages can only go to all consumers, with requeue")
        self._transport.receipts.release(self._transport.receipts.of_channel(self))

    def basic_qos(self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False) -> None:
        """Set how many unacknowledged messages each consumer of the channel may have; 0 is no limit."""
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        self._transport.receipts.notify()

    def close(self) -> None:
        """Stop all consumers; other consumers get the unacknowledged messages."""
        if not self.closed:
            self.closed: bool = True
            for tag in list(self._consuming):
                self.basic_cancel(tag)
            self._transport.receipts.settle(self)
            try:
                self.stage.settle()
            finally:
                self._transport.close_channel(self)

    def _binding(self, exchange: str, key: str, *, queue: str = "", destination: str = "") -> dict[str, object]:
        names = self.stage.namespace
        target = {"queue": names.queue(queue)} if queue else {"destination": names.exchange(destination)}
        pattern = pattern_of(self._transport.kinds.get(exchange, "topic" if exchange else "direct"), key)
        return {"exchange": names.exchange(exchange or DEFAULT), "pattern": pattern, **target}

    def _queue_fields(self, name: str, arguments: Mapping[str, Any], *, expires: bool) -> dict[str, object]:
        known = (EXPIRES, MESSAGE_TTL, DELIVERY_LIMIT, PRIORITIES)
        if unknown := sorted(set(arguments) - set(known)):
            logger.warning("queue %r: the arguments %s have no effect", name, ", ".join(unknown))
        seconds = _seconds(arguments.get(EXPIRES)) or (MINIMUM_EXPIRES_SECONDS if expires else None)
        return {
            "queue": self.stage.namespace.queue(name),
            "expires_seconds": max(seconds, MINIMUM_EXPIRES_SECONDS) if seconds else None,
            "message_ttl_seconds": _seconds(arguments.get(MESSAGE_TTL)),
            "maximum_receives": arguments.get(DELIVERY_LIMIT, MAXIMUM_RECEIVES),
        }

    def _return(self, message: dict[str, Any], exchange: str, routing_key: str) -> None:
        text = f"NO_ROUTE: no queue gets messages of exchange {exchange!r} with key {routing_key!r}"
        error = amqp.error_for_code(NO_ROUTE, text, (50, 60), amqp.ChannelError)
        if not self.events["basic_return"]:
            raise error
        for handler in self.events["basic_return"]:
            handler(error, exchange, routing_key, message)


def _seconds(milliseconds: float | None) -> int | None:
    """Return a time in whole seconds, at least one."""
    return None if milliseconds is None else max(1, math.ceil(milliseconds / 1000))
