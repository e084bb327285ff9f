"""The transport: a connection of kombu to a stage, its threads and its part in an event loop."""

import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any

from amqp import exceptions as amqp
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from kombu.transport import virtual
from kombu.utils.url import maybe_sanitize_url, url_to_parts

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.shared.deployment import DEFAULT_STAGE, find_deployment, settings_session
from signalbox.cli.shared.user_keys import user_key
from signalbox.clients.deployment import require_local
from signalbox.clients.exchange.client import named_client, stage_client
from signalbox.clients.exchange.consumer import HEARTBEATS_PER_HOLD, HOLD, heartbeat
from signalbox.errors import RejectedError
from signalbox.kombu.channel import EXCHANGE_TYPES, Channel
from signalbox.kombu.consumers import LONG_POLL_SECONDS, ChannelConsumer, ConsumerDelivery, ReceivedMessages, Receiver
from signalbox.kombu.errors import amqp_errors
from signalbox.kombu.receipts import Receipts
from signalbox.kombu.stage import BrokerStage
from signalbox.sarracenia.rights.names import UserName, parse_user_name

if TYPE_CHECKING:
    from kombu import Connection

    from signalbox.clients.exchange.client import ExchangeClient


LOCAL, AWS = "local", "aws"
FORMS = "signalbox://[USER@]local or signalbox://[USER@]aws/STAGE?region=REGION"
READ_SECONDS = 60  # three times the longest poll
TRIES = 3
CALLS_AT_ONCE = 50  # long polls, one for each consumed queue, and other calls


@dataclass(frozen=True, slots=True)
class Address:
    """A stage and the user of a connection; without a user, an administrator."""

    place: str
    stage: str = DEFAULT_STAGE
    user: UserName | None = None
    region: str | None = None
    port: int | None = None  # of the local stage's emulator, if the URL names it

    @classmethod
    def of_connection(cls, connection: "Connection") -> "Address":
        """Parse the URL of a connection, of which kombu passes on parts after a failover. Raises `RejectedError`."""
        place, port, user = connection.hostname, connection.port, connection.userid
        stage, query = connection.virtual_host.strip("/"), dict[str, str]()
        if "://" in (place or ""):
            _scheme, place, port, user, _password, stage, query = url_to_parts(place)
        if place not in (LOCAL, AWS) or (place == LOCAL and stage):
            shown = str(maybe_sanitize_url(str(connection.hostname)))[:200]  # some write a password, which none needs
            raise RejectedError(f"broker URL: expected {FORMS}, not {shown!r}")
        region = query.get("region") or connection.transport_options.get("region")
        return cls(place, stage or DEFAULT_STAGE, parse_user_name(user) if user else None, region, port)

    def client(self, *, connect_seconds: float) -> "ExchangeClient":
        """Return a client of the stage's exchanges after one call to it, which shows that it can be reached."""
        config = Config(
            connect_timeout=connect_seconds,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": TRIES},
            max_pool_connections=CALLS_AT_ONCE,
            user_agent_extra="signalbox-kombu",
        )
        if self.place == AWS:
            sqs = settings_session(self.region).client("sqs", config=config)
            return named_client(sqs, self.user, stage=self.stage)
        deployment = require_local(find_deployment())
        key = user_key(deployment, self.user) if self.user else ClientCredentials(*deployment.administrator.values())
        endpoint = f"http://127.0.0.1:{self.port}" if self.port else deployment.endpoint_url
        sqs = deployment.session_of(key).client("sqs", config=config, endpoint_url=endpoint)
        client = stage_client(sqs, deployment.outputs, user=self.user)
        sqs.get_queue_url(QueueName=client.names.control_queue(self.user))
        return client


MAXIMUM_HOLD_SECONDS = 43_200  # SQS
EXIT_PRIORITY = 1  # before what kombu itself does at the end of a program


class Transport(virtual.Transport):  # type: ignore[misc]  # kombu has no types
    """A connection to a stage. `kinds` are the types of the exchanges that it declared."""

    Channel = Channel
    can_parse_url = True
    default_port = None
    driver_type = driver_name = "signalbox"
    connection_errors = (amqp.ConnectionError, OSError, BotoCoreError)
    channel_errors = (amqp.ChannelError,)
    recoverable_connection_errors = (amqp.RecoverableConnectionError, OSError, BotoCoreError)
    recoverable_channel_errors = (amqp.RecoverableChannelError,)
    implements = virtual.Transport.implements.extend(asynchronous=True, exchange_type=EXCHANGE_TYPES, heartbeats=False)

    def __init__(self, client: "Connection", **options: object) -> None:
        super().__init__(client, **options)
        self.loop: Any = None
        self._threads = ExitStack()

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:  # noqa: ARG002
        """Return the broker URL; it has no password."""
        return str(maybe_sanitize_url(uri, mask))

    def establish_connection(self) -> "Transport":
        """Connect to the stage. Raises errors of AMQP."""
        with amqp_errors("connect"):
            client = Address.of_connection(self.client).client(connect_seconds=self.client.connect_timeout or 5)
        options = self.client.transport_options
        hold = min(MAXIMUM_HOLD_SECONDS, int(options.get("visibility_timeout") or HOLD.total_seconds()))
        self.stage = BrokerStage(client)
        self.kinds: dict[str, str] = {}
        self._receivers: list[Receiver] = []
        changed = threading.Condition(threading.RLock())
        self.inbox, self.receipts = ReceivedMessages(changed), Receipts(client.sqs, self.stage.namespace, hold, changed)
        self._open_threads()
        connection: Transport = super().establish_connection()
        return connection

    def close_connection(self, connection: "Transport") -> None:
        """Close all channels; others get what is not acknowledged."""
        super().close_connection(connection)
        self.unregister_from_event_loop(connection, self.loop)
        self._threads.close()

    def receive_for(self, consumer: ChannelConsumer, queue_url: str) -> None:
        """Receive messages for a consumer, by a poll that is under way for a former one if there is any."""
        with self.inbox.changed:
            for receiver in self._receivers:
                if receiver.queue_url == queue_url and receiver.consumer is None and not receiver.is_ended:
                    receiver.consumer = consumer
                    return
            self._receivers = [one for one in self._receivers if not one.is_ended]
            wait = int(self.client.transport_options.get("wait_time_seconds", LONG_POLL_SECONDS))
            self._receivers.append(Receiver(queue_url, self.inbox, self.receipts, consumer, wait))
        self._receivers[-1].start()

    def stop_receiving(self, consumer: ChannelConsumer) -> list[ConsumerDelivery]:
        """Receive no more messages for a consumer; return those that were not delivered to it."""
        with self.inbox.changed:
            for receiver in self._receivers:
                if receiver.consumer is consumer:
                    receiver.consumer = None
            self.inbox.changed.notify_all()
            return self.inbox.take_all(consumer)

    def drain_events(self, connection: "Transport", timeout: float | None = None) -> None:  # noqa: ARG002 - kombu's
        """Deliver one message; wait for it. Raises `TimeoutError`."""
        delivery = self.inbox.take(timeout)
        delivery.consumer.channel.deliver(delivery)

    def register_with_event_loop(self, connection: "Transport", loop: Any) -> None:
        """Deliver messages from an event loop of kombu."""
        self.loop = loop
        loop.add_reader(self.inbox.readable, self._deliver_from_loop, connection, loop)

    def unregister_from_event_loop(self, connection: "Transport", loop: Any) -> None:  # noqa: ARG002
        """Stop the delivery from an event loop."""
        if self.loop is not None:
            self.loop.remove_reader(self.inbox.readable)
            self.loop = None

    def _deliver_from_loop(self, connection: "Transport", loop: Any) -> None:
        """Deliver one message, and the next one in another turn of the loop."""
        self.inbox.silence()
        with suppress(TimeoutError):
            self.drain_events(connection, timeout=0)
            loop.call_soon(self._deliver_from_loop, connection, loop)

    def _open_threads(self) -> None:
        """Start the threads that acknowledge messages and keep them invisible, until the connection is closed."""
        closed = threading.Event()
        self._threads = ExitStack()
        self._threads.callback(self.inbox.close)
        self._threads.callback(self.receipts.notify)
        self._threads.callback(closed.set)
        every = timedelta(seconds=self.receipts.hold_seconds) / HEARTBEATS_PER_HOLD
        self._threads.enter_context(heartbeat(self.receipts.extend, every=every))
        threading.Thread(target=self.receipts.flush_until, args=(closed,), daemon=True).start()
        # A program that ends without closing its connection must not lose acknowledgements.
        self._threads.callback(Finalize(self, self.receipts.settle, exitpriority=EXIT_PRIORITY).cancel)
