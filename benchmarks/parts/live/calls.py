"""The calls of AWS that a publication makes while other sessions hold many subscriptions that do not match.

The function `route` runs as it is deployed, in its own process, with moto instead of AWS.
"""

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from multiprocessing import get_context
from typing import Any

import boto3
import botocore.session
from moto import mock_aws

from lambdas.exchange import route, route_wiring, wiring
from lambdas.shared import instance
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.items import subscriber_key
from signalbox.aws.live.subscribers import DynamoSubscribers
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, ttl
from signalbox.aws.shared.expressions import Put
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.publication_metadata import (
    AcknowledgementTarget,
    PublicationMetadata,
    RealmPublication,
    message_for,
)
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import outgoing
from signalbox.sarracenia.rights.names import ExchangeName
from tests.handlers.environment import OVERFLOW, STREAM, clear_caches, create_history_stream
from tests.handlers.recorded_events import ACCOUNT

SIZES = (10, 100, 1_000, 10_000)
CONNECTIONS = 10
PUBLICATIONS = 5
MANY_CHANGES = 40
"""More changes than the version of a realm's patterns holds: a function that missed them reads older chunks, too."""
REGION, ROLE = "us-east-1", "AROASESSION"
REALM, TOPIC = ExchangeName("xs_trial.fifo"), RoutingKey("trial.other.log")
NAMES = StageNames("signalbox", "stage-")
JOE, KEPT_FOR = Listener(SessionId(7), "joe", "subscriber"), timedelta(hours=2)
KEY = {"pk": "HASH", "sk": "RANGE"}


@dataclass(frozen=True, slots=True)
class Spent:
    """The calls of AWS of an acknowledged publication alone in its batch, and the bytes of their responses."""

    calls: float
    answered_bytes: float


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls with a number of subscriptions, half prefixes and half wildcards, and one that matches."""

    subscriptions: int
    warm: Spent
    """The median of a function with cached subscribers."""
    cold: Spent
    """The first publication of a function instance."""
    behind: Spent
    """The first publication after a connection with many patterns was closed."""


def measure(say: Callable[[str], None], sizes: Sequence[int] = SIZES) -> list[Calls]:
    """Return the calls for each number of subscriptions; the numbers ascend."""
    say(f"up to {sizes[-1]:,} subscriptions in the tables")
    with ProcessPoolExecutor(1, get_context("spawn")) as process:  # with its own environment variables and moto
        return process.submit(_counted, sizes).result()


def _counted(sizes: Sequence[int]) -> list[Calls]:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION=REGION)
    with mock_aws():
        realm = Realm()
        return [realm.counted(size) for size in sizes]


@dataclass
class Realm:
    """A realm in the tables of a stage."""

    order_by: OrderBy = OrderBy.PUBLISHER
    answers: list[int] = field(default_factory=list)
    """The bytes of each response of AWS."""
    services: Counter[str] = field(default_factory=Counter)
    """The number of responses of each service."""
    subscribers: DynamoSubscribers = field(init=False)
    _attached: int = 0
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        session = botocore.session.get_session()
        session.register("after-call", self._answered)
        boto3.setup_default_session(botocore_session=session)
        exchanges, live = (_table(name) for name in ("Exchanges", "Live"))
        DynamoExchanges(exchanges).create(
            ExchangeRecord(REALM, None, datetime.now(UTC), live=LiveSettings(self.order_by))
        )
        create_history_stream()
        os.environ.update(_settings())
        self.subscribers = DynamoSubscribers(live)
        self._attach(TopicPattern.parse(TOPIC), ConnectionId("reader"))

    def counted(self, size: int) -> Calls:
        """Add subscriptions up to `size`, and return the calls."""
        self._fill(range(self._attached, size - MANY_CHANGES))
        for number in range(size - MANY_CHANGES, size):  # attached again: the same number of changes at each size
            self._attach(_pattern(number % size), _connection(number % size))
        self._attached = size
        self.begin()
        cold = self._publish()
        warm = [self._publish() for _ in range(PUBLICATIONS)]
        self.subscribers.detach(REALM, [_pattern(size + n) for n in range(MANY_CHANGES)], ConnectionId("passer-by"))
        return Calls(size, _median(warm), cold, self._publish())

    def begin(self) -> None:
        """Begin a new function instance, whose calls are counted."""
        clear_caches(wiring, route_wiring)
        instance._session().register("after-call", self._answered, unique_id="counted")  # noqa: SLF001 - not boto3's
        route_wiring.counters().pause = timedelta(0)  # whatever the time between two publications

    def _fill(self, numbers: Iterable[int]) -> None:
        """Write the rows of `attach` without the changes, which are slow in moto."""
        now, puts = datetime.now(UTC), list[Put]()
        common = {
            "session": JOE.session,
            "authid": JOE.authid,
            "authrole": JOE.authrole,
            "created_at": milliseconds(now),
        }
        for number in numbers:
            pattern, connection = _pattern(number), _connection(number)
            row = {"connection": connection, "match": pattern.match.value, "uri": pattern.uri} | common
            puts.append(Put(subscriber_key(REALM, pattern, connection) | row | ttl(now + KEPT_FOR)))
        self.subscribers.table.write_all(puts)

    def _attach(self, pattern: TopicPattern, connection: ConnectionId) -> None:
        now = datetime.now(UTC)
        self.subscribers.attach(REALM, Subscriber(connection, pattern, JOE), at=now, expires_at=now + KEPT_FOR)

    def _publish(self) -> Spent:
        self.answers.clear()
        answer = route.handler({"Records": [publication_record(next(self._numbers), order_by=self.order_by)]}, None)
        assert answer == {"batchItemFailures": []}
        return Spent(len(self.answers), sum(self.answers))

    def _answered(self, **event: Any) -> None:  # noqa: ANN401 - botocore's
        self.answers.append(len(event["http_response"].content))
        self.services[str(event["model"].service_model.service_id)] += 1


def _median(spent: Sequence[Spent]) -> Spent:
    return Spent(statistics.median(one.calls for one in spent), statistics.median(one.answered_bytes for one in spent))


def _pattern(number: int) -> TopicPattern:
    if number % 2:
        return TopicPattern.parse(f"trial..n{number}", MatchPolicy.WILDCARD)
    return TopicPattern.parse(f"trial.n{number}.", MatchPolicy.PREFIX)


def _connection(number: int) -> ConnectionId:
    return ConnectionId(f"connection-{number % CONNECTIONS}")


def publication_record(
    number: int, *, topic: RoutingKey = TOPIC, publisher: str = "publisher", order_by: OrderBy
) -> dict[str, object]:
    """Return a publication of a session as an SQS record; `publisher` is its connection."""
    note = PublicationMetadata(
        PublicationId(number + 1),
        acknowledge_to=AcknowledgementTarget(ConnectionId(publisher), RequestId(number + 1)),
    )
    said = RealmPublication(topic, Payload(("x" * 100,)), note, "joe", ConnectionId(publisher))
    message = message_for(said, order_by=order_by, deduplication_id=f"d-{number}")
    sent_at, document = str(round(time.time() * 1000)), outgoing(message)
    attributes: Any = document["MessageAttributes"]
    return {
        "messageId": f"message-{number}",
        "receiptHandle": f"handle-{number}",
        "body": document["MessageBody"],
        "attributes": {
            "SenderId": f"{ROLE}:session",
            "SentTimestamp": sent_at,
            "ApproximateFirstReceiveTimestamp": sent_at,
            "ApproximateReceiveCount": "1",
            "MessageGroupId": document["MessageGroupId"],
            "MessageDeduplicationId": document["MessageDeduplicationId"],
            "SequenceNumber": str(number + 1),
        },
        "messageAttributes": {
            name: {"dataType": one["DataType"], "stringValue": one["StringValue"]} for name, one in attributes.items()
        },
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAMES.queue(REALM)}",
    }


def _settings() -> dict[str, str]:
    made = boto3.client("sqs").create_queue(QueueName="outbox.fifo", Attributes={"FifoQueue": "true"})
    outbox = made["QueueUrl"]
    prefix = outbox.rpartition("/")[0]
    return {
        "STAGE": NAMES.stage,
        "EXCHANGE_TABLE": "Exchanges",
        "EXCHANGE_PREFIX": NAMES.prefix,
        "EXCHANGE_DEAD_LETTER_QUEUE_URL": f"{prefix}/dead",
        "EXCHANGE_RETRY_QUEUE_URL": f"{prefix}/retries",
        "EXCHANGE_ORDERED_RETRY_QUEUE_URL": f"{prefix}/retries.fifo",
        "EXCHANGE_CONTROL_ROLE_ID": "AROACONTROL",
        "ROUTE_TIMEOUT_SECONDS": "30",
        "ROUTE_RETRY_SECONDS": "30",
        "EXCHANGE_RETENTION_SECONDS": "345600",
        "POWERTOOLS_METRICS_DISABLED": "true",  # they would be printed
        "HISTORY_STREAM": STREAM,
        "HISTORY_OVERFLOW_URL": OVERFLOW,
        "KEPT_BUCKET": "kept",
        "LIVE_TABLE": "Live",
        "LIVE_OUTBOX_URL": outbox,
        "LIVE_SESSION_ROLE_ID": ROLE,
    }


def _table(name: str) -> DynamoTable:
    client = boto3.client("dynamodb")
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in KEY],
        KeySchema=[{"AttributeName": one, "KeyType": kind} for one, kind in KEY.items()],  # type: ignore[typeddict-item]
    )
    return DynamoTable(client, name)
