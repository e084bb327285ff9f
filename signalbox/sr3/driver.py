"""sr3's driver for the scheme `amqpsqs`: a stage of Signalbox as a broker, by sr3 3.3's interface `Moth`.

The methods' names are sr3's, which finds the class by its own: the scheme in capitals. That what fails is logged, and
done again later and later, is what sr3's driver for AMQP does, too.
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
from signalbox.sarracenia.broker_url import Broker
from signalbox.sarracenia.formats.topics import InvalidTopic
from signalbox.sr3.messages import Message, Unreadable, posted, received
from signalbox.sr3.receive_buffer import Intake
from signalbox.sr3.subscription import Subscription

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

DEFAULTS = {"batch": 25, "exchangeDeclare": True, "prefetch": 25}
# An idle sr3 pauses for about as long by itself; `sr3 stop` waits for half a minute, for all queues of an instance.
POLL_SECONDS = 5
# How often sr3 is told how many messages wait; each time is a request.
LOOK_SECONDS = 30
COMPLAINT_SECONDS = 5
OF_ONE_MESSAGE = (InvalidPublication, InvalidTopic, Unreadable)

logger = logging.getLogger(__name__)


class AMQPSQS(Moth):  # type: ignore[misc]  # sr3 has no types
    """A broker whose exchanges and queues are queues of SQS."""

    o: dict[str, Any]

    def __init__(self, props: Mapping[str, Any], is_subscriber: bool) -> None:  # noqa: FBT001 - sr3's interface
        super().__init__(props, is_subscriber)
        self.o = {**self.o, **{name: value for name, value in DEFAULTS.items() if name not in props}}
        # By this sr3 finds the broker to which a message is acknowledged: one for each queue.
        self.broker = f"{self._credential} {self._subscription.queue if is_subscriber else ''}"
        self._client: ExchangeClient | None = None
        self._intake: Intake | None = None
        self._open = ExitStack()
        self._is_set_up = False
        self._next_complaint = self._next_look = 0.0

    def getSetup(self) -> None:  # noqa: N802 - sr3's interface, like all names with capitals here
        """Declare the queue and its bindings."""
        self._set_up(self._declare_queue)

    def putSetup(self) -> None:  # noqa: N802
        """Declare the exchanges."""
        self._set_up(self._declare_exchanges)

    def getCleanUp(self) -> None:  # noqa: N802
        """Delete the queue with all that waits in it."""
        name = self._subscription.queue
        self._clean_up(f"queue {name}", lambda client: client.delete_queue(name))

    def putCleanUp(self) -> None:  # noqa: N802
        """Delete the exchanges that nothing is bound to."""
        for name in self._exchanges:
            self._clean_up(f"exchange {name}", lambda client, name=name: client.delete_exchange(name))  # type: ignore[misc]

    def newMessages(self) -> list[Message]:  # noqa: N802
        """Return a batch of what waits in the queue; waits a little for the first."""
        intake = self._filled()
        if intake is None:
            return []
        messages = [self._next(intake) for _ in range(min(intake.waiting, self.o["batch"]))]
        return [message for message in messages if message is not None]

    def getNewMessage(self) -> Message | None:  # noqa: N802
        """Return one message, or None."""
        intake = self._filled()
        return self._next(intake) if intake is not None and intake.waiting else None

    def ack(self, m: Message) -> bool:
        """Say that a message is done; SQS is told of several at once."""
        if "ack_id" not in m:
            return True  # sr3 kept it for itself before, and tries again
        receipt = m.pop("ack_id")["receipt"]
        m["_deleteOnPost"].discard("ack_id")
        with self._telling("acknowledging failed, so that messages come again"):
            if self._intake is not None and self._intake.finish(receipt):
                return True
            logger.warning("a message is done too late: others get it, too")
        return False

    def putNewMessage(  # noqa: N802
        self,
        message: Message,
        content_type: str = "application/json",  # noqa: ARG002 - sr3's drivers find it out by themselves
        exchange: str | None = None,
    ) -> bool:
        """Publish a message; False if that failed, so that sr3 keeps it and tries again."""
        if not self._is_set_up:
            self.putSetup()
        if self._client is None or not self._is_set_up:
            return False
        with self._telling("publishing failed"):
            self._publish(self._client, exchange or self._exchange_of(message), message)
            return True
        self.metrics["txBadCount"] += 1
        return False

    def metricsReport(self) -> Mapping[str, Any]:  # noqa: N802
        """Return sr3's metrics, with the number of messages that wait, as of lately."""
        now = time.time()
        if self._client is not None and self._intake is not None and now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            with self._telling("counting messages failed"):
                waiting = _stage().waiting_messages(self._client, self._intake.consumer)
                self.metrics["brokerQueuedMessageCount"] = waiting
        metrics: Mapping[str, Any] = super().metricsReport()
        return metrics

    def close(self) -> None:
        """Let others have what is not acknowledged, and end."""
        with self._telling("closing failed"), self._open:
            if self._intake is not None:
                self._intake.acknowledge()
        self._client, self._intake, self._is_set_up = None, None, False
        self.metricsDisconnect()

    @property
    def _subscription(self) -> Subscription:
        return Subscription.of(self.o)

    @property
    def _credential(self) -> Any:  # noqa: ANN401 - sr3 has no types
        where = self.o["subscriptions"][self.o["subscription_index"]] if self.is_subscriber else self.o
        return where["broker"]

    @property
    def _exchanges(self) -> list[str]:
        exchange = self.o["exchange"]
        return exchange if isinstance(exchange, list) else [exchange] if exchange else []

    def _set_up(self, declare: Callable[["ExchangeClient"], None]) -> None:
        start = time.time()
        if self._stop_requested or self._is_too_soon(start):
            return
        with self._telling(f"setting up {self._credential} failed"):
            with self._connected() as client:
                declare(client)
            self._is_set_up = True
            self.metricsConnect()
            self.next_connect_failures = 0
            return
        self.setEbo(start)

    def _is_too_soon(self, now: float) -> bool:
        if now < self.next_connect_time and now >= self._next_complaint:
            self._next_complaint = now + COMPLAINT_SECONDS
            logger.warning("asking %s again in %.1f seconds", self._credential, self.next_connect_time - now)
        return bool(now < self.next_connect_time)

    def _connected(self) -> "ExchangeClient":
        if self._client is None:
            client: ExchangeClient = _stage().client_of(Broker.parse(self._credential.url.geturl()))
            self._client = client
        return self._client

    def _declare_queue(self, client: "ExchangeClient") -> None:
        wanted = self._subscription
        if wanted.is_declared and self._does(f"declare queue {wanted.queue}"):
            client.declare_queue(
                wanted.queue, expires=wanted.expires, message_ttl=wanted.message_ttl, prefetch=wanted.prefetch
            )
        for one in wanted.bindings:
            if self._does(f"bind {wanted.queue} with {one.pattern} to {one.exchange}"):
                client.bind(one.exchange, wanted.queue, one.pattern)
        for one in wanted.former_bindings:
            if self._does(f"unbind {wanted.queue} with {one.pattern} from {one.exchange}"):
                client.unbind(one.exchange, wanted.queue, one.pattern)

    def _declare_exchanges(self, client: "ExchangeClient") -> None:
        for name in self._exchanges if self.o["exchangeDeclare"] else ():
            if self._does(f"declare exchange {name}"):
                client.declare_exchange(name)

    def _clean_up(self, what: str, delete: Callable[["ExchangeClient"], object]) -> None:
        if not self._does(f"delete {what}"):
            return
        with self._telling(f"deleting {what} failed"), self._connected() as client:
            delete(client)

    def _does(self, what: str) -> bool:
        is_dry = bool(self.o["dry_run"])
        logger.info("%s%s (as: %s)", what, " (dry run)" if is_dry else "", self._credential)
        return not is_dry

    def _filled(self) -> Intake | None:
        if self._stop_requested:
            return None
        if not self._is_set_up:
            self.getSetup()
        if not self._is_set_up:
            return None
        start = time.time()
        with self._telling(f"receiving from {self.broker} failed"):
            intake = self._new_intake() if self._intake is None else self._intake
            intake.fill(wait_seconds=max(1, POLL_SECONDS // len(self.o["subscriptions"])))
            return intake
        self.setEbo(start)
        return None

    def _new_intake(self) -> Intake:
        wanted = self._subscription
        with self._connected() as client:
            consumer = client.consumer(wanted.queue, prefetch=wanted.at_once(self.o["batch"]))
            self._intake = Intake(self._open.enter_context(consumer))
        return self._intake

    def _next(self, intake: Intake) -> Message | None:
        taken = intake.next()
        self.metrics["rxByteCount"] += len(taken.delivered.body)
        message: Message | None = None
        with self._telling("a message is given back until it is a dead letter"):
            message = received(taken.delivered, self.o)
        if message is None:
            self.metrics["rxBadCount"] += 1
            with self._telling("giving back failed"):
                intake.give_back(taken)
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
        raise Unreadable(f"which of the exchanges {exchanges} is to get the message is not said")

    def _publish(self, client: "ExchangeClient", exchange: str, message: Message) -> None:
        post = posted(message, self.o)
        client.publish(exchange, post.routing_key, post.body, post.headers)
        where = {"broker": str(self._credential), "topic": post.routing_key, "exchange": exchange}
        message["posts"] = [*message.get("posts", ()), where]
        message["_deleteOnPost"] |= {"posts"}
        self.metrics["txByteCount"] += len(post.body) + sum(map(len, post.headers.values()))
        self.metrics["txGoodCount"] += 1
        self.metrics["txLast"] = sarracenia.nowstr()

    @contextmanager
    def _telling(self, failure: str) -> Iterator[None]:
        """Log meanwhile what goes wrong; what was declared may be gone then, and is declared again before the next."""
        try:
            with _stage().reaching(str(self._credential)):
                yield
        except SignalboxError as error:
            logger.error("%s: %s", failure, error)  # noqa: TRY400 - it says all
            if not isinstance(error, OF_ONE_MESSAGE):
                self._is_set_up = False


def _stage() -> Any:  # noqa: ANN401 - a module
    from signalbox.sr3 import stage  # noqa: PLC0415 - botocore, which most of sr3's commands do not need

    return stage
