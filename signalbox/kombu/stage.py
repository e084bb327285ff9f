"""A stage as a broker: what a channel of AMQP asks of it, as commands and as calls of SQS."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.exchange.client import ExchangeClient
from signalbox.errors import SignalboxError
from signalbox.exchange.matching.graph import RoutingGraph
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, ExchangeRecord, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.kombu.errors import amqp_errors
from signalbox.kombu.names import DEFAULT, Namespace, escaped
from signalbox.messages import outgoing
from signalbox.new_queues import when_usable
from signalbox.sarracenia.rights.names import ExchangeName

Declaration = tuple[tuple[str, object], ...]
"""A command and its fields."""


@dataclass(slots=True)
class Declarations:
    """Sends commands, and no declaration twice, except of queues that expire. Raises errors of AMQP. Thread-safe."""

    client: ExchangeClient
    _known: set[Declaration] = field(default_factory=set)
    _expiring: set[object] = field(default_factory=set)
    _sent: dict[str, Declaration] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def send(self, command: str, fields: Mapping[str, object]) -> None:
        """Send a declaration that `settle` awaits; a field of value None is left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        declaration = (("command", command), *given.items())
        if "expires_seconds" in given:
            self._expiring.add(given["queue"])  # it may be gone when it is declared again
        with self._lock, amqp_errors(command):
            if declaration not in self._known or given.get("queue") in self._expiring:
                self._sent[self.client.control.send(command, given)] = declaration
                self._known.add(declaration)

    def bind(self, fields: Mapping[str, object]) -> None:
        """Declare a binding of an exchange and a queue whose declarations were sent before."""
        self.settle()
        self.send("bind", fields)
        self.settle()

    def knows(self, name: str) -> bool:
        """Return whether this connection declared an exchange or a queue of a name of the stage."""
        with self._lock:
            return any(name in (value for _field, value in one[:2]) for one in self._known)

    def settle(self) -> None:
        """Wait until everything that was sent exists. Raises the first error."""
        with self._lock, amqp_errors("declare"):
            errors: list[Exception] = []
            sent, self._sent = self._sent, {}
            for request_id, declaration in sent.items():
                try:
                    self.client.control.result(request_id)
                except (SignalboxError, BotoCoreError, ClientError) as error:
                    self._known.discard(declaration)
                    errors.append(error)
            if errors:
                raise errors[0]

    def ask(self, command: str, fields: Mapping[str, object]) -> Any:
        """Return the result of a command after all declarations; after a deletion, none of them counts as declared."""
        with self._lock, amqp_errors(command):
            self.settle()
            if command.startswith(("delete", "unbind")):
                self._known.clear()
            return self.client.ask(command, fields)


Answer = TypeVar("Answer")
WAITING: Final = "ApproximateNumberOfMessages"
NEVER = datetime.fromtimestamp(0, UTC)
ROUTES_SECONDS = 5.0  # how long a mandatory message relies on the bindings that were read


@dataclass(slots=True)
class BrokerStage(Declarations):
    """The exchanges and queues of a stage in the namespace of a connection. Raises errors of AMQP. Thread-safe."""

    _routes: RoutingGraph = field(default_factory=RoutingGraph)
    _routes_read_at: float = float("-inf")

    @property
    def namespace(self) -> Namespace:
        """The names of the connection."""
        return Namespace(self.client.user, self.client.names.prefix)

    def queue_url(self, queue: str) -> str:
        """Return the URL of a queue of kombu's name."""
        return self._url(self.namespace.queue(queue))

    def check_exchange(self, exchange: str) -> None:
        """Raise `NotFound` if an exchange does not exist."""
        name = self.namespace.exchange(exchange)
        queue = self.client.names.queue(name)
        self._call(f"exchange {exchange!r}", name, lambda: self.client.sqs.get_queue_url(QueueName=queue))

    def size(self, queue: str) -> int:
        """Return the approximate number of waiting messages of a queue. Raises `NotFound` if it does not exist."""
        sqs, url = self.client.sqs, self.queue_url(queue)
        ask = partial(sqs.get_queue_attributes, QueueUrl=url, AttributeNames=[WAITING])
        reply = self._call(f"queue {queue!r}", self.namespace.queue(queue), ask)
        return int(reply["Attributes"][WAITING])

    def publish(self, body: str, *, exchange: str, routing_key: str) -> None:
        """Publish a message, which is stored durably when this returns. Raises `NotFound`."""
        name = self._destination(exchange, routing_key)
        what = f"publish to exchange {exchange!r} with key {routing_key!r}"
        with amqp_errors(what):
            message = MessageProperties.of_publication(escaped(routing_key), body).published()
        fields: dict[str, Any] = outgoing(message)
        self._call(what, name, lambda: self.client.sqs.send_message(QueueUrl=self._url(name), **fields))

    def reaches_a_queue(self, exchange: str, routing_key: str) -> bool:
        """Return whether a message would reach a queue, by bindings that are at most five seconds old."""
        if not exchange and self.client.user is None:
            return True  # or SQS refuses it
        name, key = ExchangeName(self._destination(exchange, routing_key)), RoutingKey(escaped(routing_key))
        is_old = self._routes_read_at + ROUTES_SECONDS < time.monotonic()
        if is_old or not self._routes.routes(name, key).queues:
            self._read_routes()
        return bool(self._routes.routes(name, key).queues)

    def _destination(self, exchange: str, routing_key: str) -> str:
        """Return the name of the exchange or queue to send to: only administrators may send to queues."""
        if not exchange and self.client.user is None:
            return self.namespace.queue(routing_key)
        return self.namespace.exchange(exchange or DEFAULT)

    def _call(self, what: str, name: str, call: Callable[[], Answer]) -> Answer:
        """Return the result of a call about a queue of SQS, which may be new if this connection declared it."""
        self.settle()
        with amqp_errors(what):
            if not self.knows(name):
                return call()
            return when_usable(call, missing=self.client.sqs.exceptions.QueueDoesNotExist, sleep=time.sleep)

    def _url(self, name: str) -> str:
        return self.client.url_prefix + self.client.names.queue(name)

    def _read_routes(self) -> None:
        graph = RoutingGraph()
        bindings = [_binding(one) for one in self.ask("bindings", {})]
        for found in self.ask("exchanges", {}):
            name = ExchangeName(found["exchange"])
            exchange = ExchangeRecord(name, None, NEVER, alternate=found.get("alternate"))
            graph.put(exchange, (one for one in bindings if one.exchange == name))
        self._routes, self._routes_read_at = graph, time.monotonic()


def _binding(document: Mapping[str, Any]) -> Binding:
    kind = ResourceKind.QUEUE if "queue" in document else ResourceKind.EXCHANGE
    target = ResourceRef(kind, document.get("queue") or document["destination"])
    return Binding(ExchangeName(document["exchange"]), target, Pattern.stored(document["pattern"]))
