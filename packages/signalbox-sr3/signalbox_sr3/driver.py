"""sr3's driver for the scheme `amqpsqs`: a stage of Signalbox as a broker, by sr3 3.3's interface `Moth`.

The names of the methods are sr3's. sr3 finds the class by its name, the scheme in capitals. Failures are logged and
retried with growing pauses, as in sr3's driver for AMQP.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import sarracenia
from sarracenia.moth import Moth

from signalbox.errors import SignalboxError
from signalbox.exchange.messages.properties import InvalidPublication
from signalbox.sarracenia.broker_url import BrokerAccount
from signalbox.sarracenia.topics import InvalidTopic
from signalbox_sr3.messages import Message, UnreadableMessage, posted, received
from signalbox_sr3.receive_buffer import ReceiveBuffer
from signalbox_sr3.subscription import Subscription

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

DEFAULTS = {"batch": 25, "exchangeDeclare": True, "prefetch": 25}
# As long as an idle sr3 pauses. `sr3 stop` waits half a minute, for all queues of an instance together.
POLL_SECONDS = 5
# Interval between counts of waiting messages; each count is a request.
COUNT_SECONDS = 30
WARNING_SECONDS = 5
OF_ONE_MESSAGE = (InvalidPublication, InvalidTopic, UnreadableMessage)

logger = logging.getLogger(__name__)


class AMQPSQS(Moth):  # type: ignore[misc]  # sr3 has no types
    """A broker whose exchanges and queues are SQS queues."""

    o: dict[str, Any]

    def __init__(self, props: Mapping[str, Any], is_subscriber: bool) -> None:  # noqa: FBT001 - sr3's interface
        super().__init__(props, is_subscriber)
        self.o = {**self.o, **{name: value for name, value in DEFAULTS.items() if name not in props}}
        # sr3 acknowledges a message to the broker of this name, so it differs for each queue.
        self.broker = f"{self._credential} {self._subscription.queue if is_subscriber else ''}"
        self._client: ExchangeClient | None = None
        self._buffer: ReceiveBuffer | None = None
        self._open = ExitStack()
        self._is_set_up = False
        self._next_warning = self._next_count = 0.0

    def getSetup(self) -> None:  # noqa: N802 - sr3's interface, like all names with capitals here
        """Declare the queue and its bindings."""
        self._set_up(self._declare_queue)

    def putSetup(self) -> None:  # noqa: N802
        """Declare the exchanges."""
        self._set_up(self._declare_exchanges)

    def getCleanUp(self) -> None:  # noqa: N802
        """Delete the queue with its messages."""
        name = self._subscription.queue
        self._clean_up(f"queue {name}", lambda client: client.delete_queue(name))

    def putCleanUp(self) -> None:  # noqa: N802
        """Delete the exchanges without bindings."""
        for name in self._exchanges:
            self._clean_up(f"exchange {name}", lambda client, name=name: client.delete_exchange(name))  # type: ignore[misc]

    def newMessages(self) -> list[Message]:  # noqa: N802
        """Return a batch of messages of the queue; waits up to `POLL_SECONDS` for the first."""
        buffer = self._filled()
        if buffer is None:
            return []
        messages = [self._next(buffer) for _ in range(min(buffer.waiting, self.o["batch"]))]
        return [message for message in messages if message is not None]

    def getNewMessage(self) -> Message | None:  # noqa: N802
        """Return one message of the queue, or None."""
        buffer = self._filled()
        return self._next(buffer) if buffer is not None and buffer.waiting else None

    def ack(self, m: Message) -> bool:
        """Acknowledge a message; acknowledgements are sent to SQS in batches."""
        if "ack_id" not in m:
            return True  # acknowledged before; sr3 retries it from its own store
        receipt = m.pop("ack_id")["receipt"]
        m["_deleteOnPost"].discard("ack_id")
        with self._logging_errors("acknowledging failed; the messages will be delivered again"):
            if self._buffer is not None and self._buffer.finish(receipt):
                return True
            logger.warning("a message was acknowledged too late: other instances receive it, too")
        return False

    def putNewMessage(  # noqa: N802
        self,
        message: Message,
        content_type: str = "application/json",  # noqa: ARG002 - sr3's drivers determine it themselves
        exchange: str | None = None,
    ) -> bool:
        """Publish a message; return False if that failed, so that sr3 stores and retries it."""
        if not self._is_set_up:
            self.putSetup()
        if self._client is None or not self._is_set_up:
            return False
        with self._logging_errors("publishing failed"):
            self._publish(self._client, exchange or self._exchange_of(message), message)
            return True
        self.metrics["txBadCount"] += 1
        return False

    def metricsReport(self) -> Mapping[str, Any]:  # noqa: N802
        """Return sr3's metrics, with the number of waiting messages, counted at most every 30 s."""
        now = time.time()
        if self._client is not None and self._buffer is not None and now >= self._next_count:
            self._next_count = now + COUNT_SECONDS
            with self._logging_errors("counting messages failed"):
                waiting = _stage().waiting_messages(self._client, self._buffer.consumer)
                self.metrics["brokerQueuedMessageCount"] = waiting
        metrics: Mapping[str, Any] = super().metricsReport()
        return metrics

    def close(self) -> None:
        """Return unacknowledged messages to the queue, and disconnect."""
        with self._logging_errors("closing failed"), self._open:
            if self._buffer is not None:
                self._buffer.acknowledge()
        self._client, self._buffer, self._is_set_up = None, None, False
        self.metricsDisconnect()

    @property
    def _subscription(self) -> Subscription:
        return Subscription.of(self.o)

    @property
    def _credential(self) -> Any:  # noqa: ANN401 - sr3 has no types
        options = self.o["subscriptions"][self.o["subscription_index"]] if self.is_subscriber else self.o
        return options["broker"]

    @property
    def _exchanges(self) -> list[str]:
        exchange = self.o["exchange"]
        return exchange if isinstance(exchange, list) else [exchange] if exchange else []

    def _set_up(self, declare: Callable[["ExchangeClient"], None]) -> None:
        start = time.time()
        if self._stop_requested or self._is_too_soon(start):
            return
        with self._logging_errors(f"setting up {self._credential} failed"):
            declare(self._connected())
            self._is_set_up = True
            self.metricsConnect()
            self.next_connect_failures = 0
            return
        self.setEbo(start)

    def _is_too_soon(self, now: float) -> bool:
        if now < self.next_connect_time and now >= self._next_warning:
            self._next_warning = now + WARNING_SECONDS
            logger.warning("retrying %s in %.1f seconds", self._credential, self.next_connect_time - now)
        return bool(now < self.next_connect_time)

    def _connected(self) -> "ExchangeClient":
        if self._client is None:
            client: ExchangeClient = _stage().client_of(BrokerAccount.parse(self._credential.url.geturl()))
            self._client = client
        return self._client

    def _declare_queue(self, client: "ExchangeClient") -> None:
        subscription = self._subscription
        if subscription.is_declared and self._should_run(f"declare queue {subscription.queue}"):
            client.declare_queue(
                subscription.queue,
                expires=subscription.expires,
                message_ttl=subscription.message_ttl,
                prefetch=subscription.prefetch,
            )
        for one in subscription.bindings:
            if self._should_run(f"bind {subscription.queue} with {one.pattern} to {one.exchange}"):
                client.bind(one.exchange, subscription.queue, one.pattern)
        for one in subscription.former_bindings:
            if self._should_run(f"unbind {subscription.queue} with {one.pattern} from {one.exchange}"):
                client.unbind(one.exchange, subscription.queue, one.pattern)

    def _declare_exchanges(self, client: "ExchangeClient") -> None:
        for name in self._exchanges if self.o["exchangeDeclare"] else ():
            if self._should_run(f"declare exchange {name}"):
                client.declare_exchange(name)

    def _clean_up(self, what: str, delete: Callable[["ExchangeClient"], object]) -> None:
        if not self._should_run(f"delete {what}"):
            return
        with self._logging_errors(f"deleting {what} failed"):
            delete(self._connected())

    def _should_run(self, operation: str) -> bool:
        is_dry = bool(self.o["dry_run"])
        logger.info("%s%s (as: %s)", operation, " (dry run)" if is_dry else "", self._credential)
        return not is_dry

    def _filled(self) -> ReceiveBuffer | None:
        if self._stop_requested:
            return None
        if not self._is_set_up:
            self.getSetup()
        if not self._is_set_up:
            return None
        start = time.time()
        with self._logging_errors(f"receiving from {self.broker} failed"):
            buffer = self._new_buffer() if self._buffer is None else self._buffer
            buffer.fill(wait_seconds=max(1, POLL_SECONDS // len(self.o["subscriptions"])))
            return buffer
        self.setEbo(start)
        return None

    def _new_buffer(self) -> ReceiveBuffer:
        subscription = self._subscription
        consumer = self._connected().consumer(
            subscription.queue, prefetch=subscription.maximum_unacknowledged(self.o["batch"])
        )
        self._buffer = ReceiveBuffer(self._open.enter_context(consumer))
        return self._buffer

    def _next(self, buffer: ReceiveBuffer) -> Message | None:
        taken = buffer.next()
        self.metrics["rxByteCount"] += len(taken.delivered.body)
        message: Message | None = None
        with self._logging_errors("a message is given back to the queue until it becomes a dead letter"):
            message = received(taken.delivered, self.o)
        if message is None:
            self.metrics["rxBadCount"] += 1
            with self._logging_errors("giving back failed"):
                buffer.release(taken)
            return None
        ack_id = {"broker": self.broker, "receipt": taken.receipt}
        message.update(subscription_index=self.o["subscription_index"], local_offset=0, ack_id=ack_id)
        self.metrics["rxGoodCount"] += 1
        self.metrics["rxLast"] = sarracenia.nowstr()
        return message

    def _exchange_of(self, message: Message) -> str:
        exchanges = self._exchanges
        if len(exchanges) > 1 and self.o.get("exchangeSplit", 0) > 1:
            return exchanges[int(self.splitPick(message))]
        if len(exchanges) == 1:
            return exchanges[0]
        raise UnreadableMessage(f"no option selects one of the exchanges {exchanges} for the message")

    def _publish(self, client: "ExchangeClient", exchange: str, message: Message) -> None:
        post = posted(message, self.o)
        client.publish(exchange, post.routing_key, post.body, post.headers)
        destination = {"broker": str(self._credential), "topic": post.routing_key, "exchange": exchange}
        message["posts"] = [*message.get("posts", ()), destination]
        message["_deleteOnPost"] |= {"posts"}
        self.metrics["txByteCount"] += len(post.body) + sum(map(len, post.headers.values()))
        self.metrics["txGoodCount"] += 1
        self.metrics["txLast"] = sarracenia.nowstr()

    @contextmanager
    def _logging_errors(self, failure: str) -> Iterator[None]:
        """Log errors raised in the context; declared queues and exchanges may be gone then, so declare them again."""
        try:
            with _stage().aws_errors(str(self._credential)):
                yield
        except SignalboxError as error:
            logger.error("%s: %s", failure, error)  # noqa: TRY400 - the message is complete
            if not isinstance(error, OF_ONE_MESSAGE):
                self._is_set_up = False


def _stage() -> Any:  # noqa: ANN401 - a module
    from signalbox_sr3 import stage  # noqa: PLC0415 - imports botocore, which most of sr3's commands do not need

    return stage
