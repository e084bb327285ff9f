"""What programs do with a stage's exchanges: declare, bind, publish, consume; the command does it by this, too.

Needs boto3's SQS client, or one like it, and nothing else; what IAM must allow is what `signalbox user add` gives.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from signalbox.clients.control import REPLY_TIMEOUT, ControlClient, SqsClient
from signalbox.clients.exchange.consumer import HEARTBEATS_PER_HOLD, HOLD, Consumer, ConsumerSqs, heartbeat
from signalbox.clients.exchange.publisher import Publisher, PublisherSqs, PublishRequest, PublishResult
from signalbox.control.protocol import InvalidControlReply
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.errors import resource_errors, translated_errors
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import DEFAULT_PREFETCH, OrderBy, ResourceKind, ResourceRef
from signalbox.messages import MessageId
from signalbox.queues import QueueName, QueueUrl, is_fifo
from signalbox.sarracenia.rights.names import UserName, parse_exchange_name, parse_queue_name, parse_user_name

CAPABILITY = "exchange"
HEARTBEATS_PER_EXPIRY = 4  # a queue is not deleted because one sign of life was late

Document = Mapping[str, Any]  # as the stage tells it; docs/exchange.md has the fields


class NotPublished(UnavailableError):
    """Raised when SQS does not say what became of a message; it may be published."""


class ExchangeSqs(SqsClient, PublisherSqs, ConsumerSqs, Protocol):
    """What is needed of boto3's SQS client."""

    def get_queue_url(self, *, QueueName: str) -> Any:  # noqa: ANN401, N803 - boto3's mapping, boto3's name
        """Return a mapping with a `QueueUrl`."""
        ...


@dataclass(slots=True)
class ExchangeClient:
    """The exchanges of a stage, for one of its users, or for an administrator, who has no name there.

    `url_prefix` is the URL of a queue up to its name: all are in one account and region. `with` it, what it makes for
    replies is gone afterwards. Threads must take turns, except with its consumers.
    """

    sqs: ExchangeSqs
    names: StageNames
    url_prefix: str
    user: UserName | None = None
    reply_timeout: timedelta = REPLY_TIMEOUT
    _control: ControlClient | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._control is not None:
            self._control.__exit__(kind, error, trace)
            self._control = None

    def ask(self, command: str, fields: Mapping[str, object] | None = None) -> object:
        """Send a command and return its result; fields that are None are not sent. Raises what `ControlClient` does."""
        given = {name: value for name, value in (fields or {}).items() if value is not None}
        return self._replying().ask(command, given)

    def send_command(self, command: str, fields: Mapping[str, object]) -> None:
        """Send a command for whose reply nobody waits, which may be done from any thread."""
        document = {"command": command, "id": secrets.token_hex(8), **fields}
        self.sqs.send_message(QueueUrl=self._url(self.names.control_queue(self.user)), MessageBody=json.dumps(document))

    def whoami(self) -> Document:
        """Return who is asking, as the stage sees it."""
        return self._object("whoami", {})

    def declare_exchange(
        self, exchange: str, *, alternate: str | None = None, live: Mapping[str, object] | None = None
    ) -> Document:
        """Declare an exchange; one that is there already is queue_document again.

        `alternate` is the exchange for what nothing is bound to: as it was if None, taken away if empty. `live` are
        the fields of the command that say what connections find; nothing changes of it if None.
        """
        other = alternate and parse_exchange_name(alternate)
        fields = {"exchange": parse_exchange_name(exchange), "alternate": other, **(live or {})}
        return self._object("declare_exchange", fields)

    def delete_exchange(self, exchange: str, *, force: bool = False) -> Document:
        """Delete an exchange that nothing is bound to, or with its bindings."""
        return self._object("delete_exchange", {"exchange": parse_exchange_name(exchange), "force": force or None})

    def declare_queue(
        self,
        queue: str,
        *,
        expires: timedelta | None = None,
        message_ttl: timedelta | None = None,
        prefetch: int | None = None,
        maximum_receives: int | None = None,
    ) -> Document:
        """Declare a queue, or give one that is there other settings.

        What is None stays as it is; no time at all is never.
        """
        settings = {
            "expires_seconds": None if expires is None else round(expires.total_seconds()),
            "message_ttl_seconds": None if message_ttl is None else round(message_ttl.total_seconds()),
            "prefetch": prefetch,
            "maximum_receives": maximum_receives,
        }
        return self._object("declare_queue", {"queue": parse_queue_name(queue), **settings})

    def delete_queue(self, queue: str, *, if_empty: bool = False) -> Document:
        """Delete a queue with its bindings and all that waits in it, or not if anything does."""
        return self._object("delete_queue", {"queue": parse_queue_name(queue), "if_empty": if_empty or None})

    def bind(self, exchange: str, target: str, pattern: str) -> Document:
        """Let a queue, or another exchange, get what is published to an exchange under keys that match."""
        Pattern.parse(pattern)
        return self._object("bind", _binding(exchange, target, pattern))

    def unbind(self, exchange: str, target: str, pattern: str) -> Document:
        """Take a binding away, one too whose pattern may not be bound any more."""
        return self._object("unbind", _binding(exchange, target, pattern))

    def exchanges(self) -> Sequence[Document]:
        """Return the exchanges that this user may read."""
        return self._list("exchanges", {})

    def queues(self) -> Sequence[Document]:
        """Return the queues that this user may read."""
        return self._list("queues", {})

    def bindings(self, exchange: str | None = None) -> Sequence[Document]:
        """Return the bindings, or those of one exchange, of what this user may read."""
        return self._list("bindings", {"exchange": exchange and parse_exchange_name(exchange)})

    def status(self, *names: str) -> Document:
        """Return how all exchanges and queues are, or those of these names, in which `*` is any text."""
        return self._object("status", {"names": list(names) or None})

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: str,
        headers: Mapping[str, str] | None = None,
        *,
        deduplication_id: str | None = None,
        order_by: OrderBy = OrderBy.TOPIC,
    ) -> MessageId:
        """Publish a message and return its id. Raises `InvalidPublication`, `NotThere`, `NotPermitted`."""
        request = PublishRequest(routing_key, body, headers or {}, deduplication_id)
        (result,) = self.publish_all(exchange, [request], order_by=order_by)
        if result.message_id is None:
            raise result.problem or NotPublished(f"SQS did not say what became of a message to exchange {exchange!r}")
        return result.message_id

    def publish_all(
        self, exchange: str, requests: Iterable[PublishRequest], *, order_by: OrderBy = OrderBy.TOPIC
    ) -> Iterator[PublishResult]:
        """Publish messages, ten a call, and yield in their order what became of each.

        One that cannot be published does not hold up the others. What a live exchange was declared to order by has to
        be said; where that is the publisher, whoever publishes must be a user. Raises `NotThere`, `NotPermitted`, and
        `RejectedError` for an administrator, whose messages the exchange would put aside.
        """
        name = parse_exchange_name(exchange)
        if order_by is OrderBy.PUBLISHER and self.user is None:
            raise RejectedError(f"exchange {name!r} goes by who publishes: publish as a user, not as an administrator")
        url = self._url(self.names.queue(name))
        publisher = Publisher(self.sqs, url, is_fifo(name), order_by, sender=self.user or "")
        with resource_errors(ResourceRef(ResourceKind.EXCHANGE, name), self.sqs, user=self.user, what="publish to"):
            yield from publisher.publish(requests)

    @contextmanager
    def consumer(self, queue: str, *, prefetch: int | None = None, hold: timedelta = HOLD) -> Iterator[Consumer]:
        """Give a consumer of a queue; several may share it, here and elsewhere.

        Meanwhile the queue does not expire, and nobody else gets what the consumer has taken. Afterwards others get
        what it did not acknowledge.
        """
        name = parse_queue_name(queue)
        queue_document = self._object("consuming", {"queue": name})
        url, chosen = self._url(self.names.queue(name)), prefetch or queue_document.get("prefetch", DEFAULT_PREFETCH)
        consumer = Consumer(self.sqs, ResourceRef(ResourceKind.QUEUE, name), url, self.user, chosen, hold)
        with ExitStack() as beats:
            beats.callback(consumer.close)
            beats.enter_context(heartbeat(consumer.extend, every=hold / HEARTBEATS_PER_HOLD))
            if queue_document.get("expires_seconds"):
                every = timedelta(seconds=queue_document["expires_seconds"]) / HEARTBEATS_PER_EXPIRY
                beats.enter_context(heartbeat(partial(self._send_heartbeat, name), every=every))
            yield consumer

    def _send_heartbeat(self, queue: str) -> None:
        """Say that a queue is consumed."""
        self.send_command("consuming", {"queue": queue})

    def _replying(self) -> ControlClient:
        if self._control is None:
            control = ControlClient(
                self.sqs,
                self._url(self.names.control_queue(self.user)),
                self.names.reply_prefix(self.user),
                stage=self.names.stage,
                capability=CAPABILITY,
                reply_timeout=self.reply_timeout,
            )
            self._control = control.__enter__()
        return self._control

    def _object(self, command: str, fields: Mapping[str, object]) -> Document:
        result = self.ask(command, fields)
        if not isinstance(result, Mapping):
            raise InvalidControlReply(f"the reply to {command!r} is no object")
        return result

    def _list(self, command: str, fields: Mapping[str, object]) -> Sequence[Document]:
        result = self.ask(command, fields)
        if not isinstance(result, Sequence) or not all(isinstance(one, Mapping) for one in result):
            raise InvalidControlReply(f"the reply to {command!r} is no list of objects")
        return result

    def _url(self, name: QueueName) -> QueueUrl:
        return QueueUrl(self.url_prefix + name)


def user_client(sqs: ExchangeSqs, user: str, *, stage: str) -> ExchangeClient:
    """Return the client of a user who knows nothing of a stage but its name.

    Raises `NotThere` and `NotPermitted` when there is no such user, or the credentials are somebody else's.
    """
    name = parse_user_name(user)
    control_queue = StageNames(stage).control_queue(name)
    missing = f"stage {stage!r} has no user {user!r}"
    with translated_errors(sqs, missing=missing, denied=f"{missing}, or these are not that user's credentials"):
        url = sqs.get_queue_url(QueueName=control_queue)["QueueUrl"]
    url_prefix = url.removesuffix(control_queue)
    with ExchangeClient(sqs, StageNames(stage), url_prefix, name) as client:
        prefix = client.whoami()["exchange_prefix"]
    return ExchangeClient(sqs, StageNames(stage, prefix), url_prefix, name)


def _binding(exchange: str, target: str, pattern: str) -> dict[str, object]:
    """Return the fields of a binding; what it leads to tells by its name what it is."""
    fields: dict[str, object] = {"exchange": parse_exchange_name(exchange), "pattern": pattern}
    if target.startswith("x"):
        return {**fields, "destination": parse_exchange_name(target)}
    return {**fields, "queue": parse_queue_name(target)}
