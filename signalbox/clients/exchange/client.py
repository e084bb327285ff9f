"""The client of a stage's exchanges: declares, binds, publishes and consumes.

It needs only an SQS client, boto3's or a similar one, and the permissions that `signalbox user add` grants.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from signalbox.clients.control import REPLY_TIMEOUT, ControlClient
from signalbox.clients.exchange.consumer import HEARTBEATS_PER_HOLD, HOLD, Consumer, heartbeat
from signalbox.clients.exchange.errors import resource_errors, translated_errors
from signalbox.clients.exchange.publisher import Publisher, PublishRequest, PublishResult
from signalbox.control.protocol import InvalidControlReply
from signalbox.errors import UnavailableError
from signalbox.exchange.model.names import CONTROL_MARK, StageNames
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import DEFAULT_PREFETCH, OrderBy, ResourceKind, ResourceRef
from signalbox.messages import MessageId
from signalbox.queues import QueueName, QueueUrl, is_fifo
from signalbox.sarracenia.rights.names import UserName, parse_exchange_name, parse_queue_name, parse_user_name

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

HEARTBEATS_PER_EXPIRY = 4  # one late heartbeat does not delete a queue

Document = Mapping[str, Any]  # a reply of the stage; docs/exchange.md has the fields


class NotPublished(UnavailableError):
    """Raised when SQS does not report whether it accepted a message, which may be published."""


@dataclass(slots=True)
class ExchangeClient:
    """The exchanges of a stage, for a user, or for an administrator, who has no user name.

    `url_prefix` is a queue's URL up to its name: all queues are in one account and region. Not
    thread-safe, except for its consumers.
    """

    sqs: "SQSClient"
    names: StageNames
    url_prefix: str
    user: UserName | None = None
    reply_timeout: timedelta = REPLY_TIMEOUT
    sleep: Callable[[float], None] = time.sleep
    _control: ControlClient | None = field(default=None, init=False)

    def ask(self, command: str, fields: Mapping[str, object] | None = None) -> object:
        """Send a command and return its result; fields of value None are left out. Raises `ControlClient`'s errors."""
        given = {name: value for name, value in (fields or {}).items() if value is not None}
        return self.control.ask(command, given)

    def ask_object(self, command: str, fields: Mapping[str, object]) -> Document:
        """Send a command whose result is an object, and return it."""
        result = self.ask(command, fields)
        if not isinstance(result, Mapping):
            raise InvalidControlReply(f"the reply to {command!r} is not an object")
        return result

    def ask_list(self, command: str, fields: Mapping[str, object]) -> Sequence[Document]:
        """Send a command whose result is a list of objects, and return it."""
        result = self.ask(command, fields)
        if not isinstance(result, Sequence) or not all(isinstance(one, Mapping) for one in result):
            raise InvalidControlReply(f"the reply to {command!r} is not a list of objects")
        return result

    def send_command(self, command: str, fields: Mapping[str, object]) -> None:
        """Send a command without waiting for its reply. Thread-safe."""
        document = {"command": command, "id": secrets.token_hex(8), **fields}
        self.sqs.send_message(QueueUrl=self._url(self.names.control_queue(self.user)), MessageBody=json.dumps(document))

    def whoami(self) -> Document:
        """Return the caller's user, role and stage."""
        return self.ask_object("whoami", {})

    def declare_exchange(
        self, exchange: str, *, alternate: str | None = None, live: Mapping[str, object] | None = None
    ) -> Document:
        """Declare an exchange; an existing one is updated and returned.

        `alternate` gets the messages that no binding matches: None keeps the present one, "" removes it. `live` are the
        fields of the command about live connections; None keeps the present settings.
        """
        other = alternate and parse_exchange_name(alternate)
        fields = {"exchange": parse_exchange_name(exchange), "alternate": other, **(live or {})}
        return self.ask_object("declare_exchange", fields)

    def delete_exchange(self, exchange: str, *, force: bool = False) -> Document:
        """Delete an exchange; without `force`, only if it has no bindings and no messages."""
        return self.ask_object("delete_exchange", {"exchange": parse_exchange_name(exchange), "force": force or None})

    def declare_queue(
        self,
        queue: str,
        *,
        expires: timedelta | None = None,
        message_ttl: timedelta | None = None,
        prefetch: int | None = None,
        maximum_receives: int | None = None,
        group_by: str | None = None,
    ) -> Document:
        """Declare a queue, or change the settings of an existing one.

        None keeps a setting; a zero duration means never.
        """
        settings = {
            "expires_seconds": None if expires is None else round(expires.total_seconds()),
            "message_ttl_seconds": None if message_ttl is None else round(message_ttl.total_seconds()),
            "prefetch": prefetch,
            "maximum_receives": maximum_receives,
            "group_by": group_by,
        }
        return self.ask_object("declare_queue", {"queue": parse_queue_name(queue), **settings})

    def delete_queue(self, queue: str, *, if_empty: bool = False) -> Document:
        """Delete a queue with its bindings and messages; with `if_empty`, only if it has no messages."""
        return self.ask_object("delete_queue", {"queue": parse_queue_name(queue), "if_empty": if_empty or None})

    def bind(self, exchange: str, target: str, pattern: str) -> Document:
        """Bind a queue or another exchange to an exchange with a pattern."""
        Pattern.parse(pattern)
        return self.ask_object("bind", _binding(exchange, target, pattern))

    def unbind(self, exchange: str, target: str, pattern: str) -> Document:
        """Remove a binding, also one whose pattern is not allowed for new bindings."""
        return self.ask_object("unbind", _binding(exchange, target, pattern))

    def exchanges(self, exchange: str | None = None) -> Sequence[Document]:
        """Return the exchanges that this user may read, without live settings, or one of them with its settings."""
        return self.ask_list("exchanges", {"exchange": exchange and parse_exchange_name(exchange)})

    def queues(self) -> Sequence[Document]:
        """Return the queues that this user may read."""
        return self.ask_list("queues", {})

    def bindings(self, exchange: str | None = None) -> Sequence[Document]:
        """Return the bindings, of all exchanges or of one, between resources that this user may read."""
        return self.ask_list("bindings", {"exchange": exchange and parse_exchange_name(exchange)})

    def status(self, *names: str) -> Document:
        """Return the status of all exchanges and queues, or of those that match a name; `*` matches any text."""
        return self.ask_object("status", {"names": list(names) or None})

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
        """Publish a message and return its id. Raises `InvalidPublication`, `NotFound` and `NotPermitted`."""
        request = PublishRequest(routing_key, body, headers or {}, deduplication_id)
        (result,) = self.publish_all(exchange, [request], order_by=order_by)
        if result.message_id is None:
            raise result.problem or NotPublished(f"SQS did not confirm a message to exchange {exchange!r}")
        return result.message_id

    def publish_all(
        self, exchange: str, requests: Iterable[PublishRequest], *, order_by: OrderBy = OrderBy.TOPIC
    ) -> Iterator[PublishResult]:
        """Publish messages, up to ten a call, and yield the results in order.

        An invalid message does not stop the others. `order_by` must be an order that the exchange keeps. Raises
        `NotFound` and `NotPermitted`.
        """
        name = parse_exchange_name(exchange)
        url = self._url(self.names.queue(name))
        publisher = Publisher(self.sqs, url, is_fifo(name), order_by, sender=self.user or "", sleep=self.sleep)
        with resource_errors(ResourceRef(ResourceKind.EXCHANGE, name), self.sqs, user=self.user, what="publish to"):
            yield from publisher.publish(requests)

    @contextmanager
    def consumer(self, queue: str, *, prefetch: int | None = None, hold: timedelta = HOLD) -> Iterator[Consumer]:
        """Yield a consumer of a queue, which may have any number of consumers.

        During the context the queue does not expire, and received messages stay invisible to others. At exit,
        unacknowledged messages become visible again.
        """
        name = parse_queue_name(queue)
        queue_document = self.ask_object("consuming", {"queue": name})
        url, chosen = self._url(self.names.queue(name)), prefetch or queue_document.get("prefetch", DEFAULT_PREFETCH)
        resource = ResourceRef(ResourceKind.QUEUE, name)
        consumer = Consumer(self.sqs, resource, url, self.user, chosen, hold, sleep=self.sleep)
        with ExitStack() as beats:
            beats.callback(consumer.close)
            beats.enter_context(heartbeat(consumer.extend, every=hold / HEARTBEATS_PER_HOLD))
            if queue_document.get("expires_seconds"):
                every = timedelta(seconds=queue_document["expires_seconds"]) / HEARTBEATS_PER_EXPIRY
                beats.enter_context(heartbeat(partial(self._send_heartbeat, name), every=every))
            yield consumer

    def _send_heartbeat(self, queue: str) -> None:
        self.send_command("consuming", {"queue": queue})

    @property
    def control(self) -> ControlClient:
        """The client of the user's control queue."""
        if self._control is None:
            self._control = ControlClient(
                self.sqs,
                self._url(self.names.control_queue(self.user)),
                self._url(self.names.reply_queue(self.user)),
                reply_timeout=self.reply_timeout,
                sleep=self.sleep,
            )
        return self._control

    def _url(self, name: QueueName) -> QueueUrl:
        return QueueUrl(self.url_prefix + name)


def stage_client(sqs: "SQSClient", outputs: Mapping[str, str], *, user: UserName | None = None) -> ExchangeClient:
    """Return the client of a user, or of an administrator, given the outputs of a stage."""
    url_prefix, _, queue = outputs["ExchangeControlQueueUrl"].rpartition("/")
    names = StageNames(queue.removesuffix(CONTROL_MARK), outputs["ExchangePrefix"])
    return ExchangeClient(sqs, names, f"{url_prefix}/", user)


def user_client(sqs: "SQSClient", user: str, *, stage: str) -> ExchangeClient:
    """Return the client of a user, given only the stage's name. Raises the errors of `named_client`."""
    return named_client(sqs, parse_user_name(user), stage=stage)


def named_client(sqs: "SQSClient", user: UserName | None, *, stage: str) -> ExchangeClient:
    """Return the client of a user, or of an administrator, given only the stage's name.

    Raises `NotFound` and `NotPermitted` when the user does not exist, or the credentials are of another user.
    """
    control_queue = StageNames(stage).control_queue(user)
    missing = f"stage {stage!r} has no user {str(user)!r}" if user else f"there is no stage {stage!r}"
    whose = "that user's" if user else "an administrator's"
    with translated_errors(sqs, missing=missing, denied=f"{missing}, or these are not {whose} credentials"):
        url = sqs.get_queue_url(QueueName=control_queue)["QueueUrl"]
    url_prefix = url.removesuffix(control_queue)
    client = ExchangeClient(sqs, StageNames(stage), url_prefix, user)
    client.names = StageNames(stage, client.whoami()["exchange_prefix"])
    return client


def _binding(exchange: str, target: str, pattern: str) -> dict[str, object]:
    """Return the fields of a binding; the name of the target shows its kind."""
    fields: dict[str, object] = {"exchange": parse_exchange_name(exchange), "pattern": pattern}
    if target.startswith("x"):
        return {**fields, "destination": parse_exchange_name(target)}
    return {**fields, "queue": parse_queue_name(target)}
