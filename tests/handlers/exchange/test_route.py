"""The function `route`: routes publications and retries copies."""

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from lambdas.exchange import route, route_wiring, wiring
from lambdas.exchange.route import handler
from lambdas.shared import instance, threads
from signalbox.aws.exchange.bindings import DynamoBindings
from signalbox.aws.exchange.counters import DynamoCounters
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.shared.messages import batch_entry, message_of
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.errors import EffectFailed, UnavailableError
from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import StageNames, dead_letter_name
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, DeclaredQueue, ExchangeRecord, ResourceKind, ResourceRef
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher
from signalbox.exchange.routing.router import Router
from signalbox.kept.objects import read_batch
from signalbox.live.admin.denies import DeniesUnread
from signalbox.messages import outgoing
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import aws, exchange_table, sqs  # noqa: F401 - fixtures
from tests.handlers.billed_calls import recorded_calls
from tests.handlers.environment import (
    BUCKET,
    OVERFLOW,
    STREAM,
    Queues,
    clear_caches,
    create_history_stream,
    new_instances,
    written_events,
)
from tests.handlers.recorded_events import Event, batch, record_of

PREFIX = "stage-"
NAMES = StageNames("signalbox", PREFIX)
RETRIES, ORDERED_RETRIES, DEAD = "retries", "retries.fifo", "dead-exchange"
LOG = "xlog.fifo"


@dataclass(kw_only=True)
class RouteStage(Queues):
    table: Any
    s3: Any

    def declare(self, exchange: str) -> None:
        made = ExchangeRecord(ExchangeName(exchange), None, datetime.now(UTC))
        assert DynamoExchanges(self.table).create(made)
        self.make(NAMES.queue(exchange))
        self.make(dead_letter_name(NAMES.queue(exchange)))

    def bind(self, exchange: str, pattern: str, *, queue: str) -> None:
        yesterday = datetime.now(UTC) - timedelta(days=1)
        DynamoQueues(self.table).create(DeclaredQueue(DeclaredName(queue), None, yesterday, yesterday))
        target = ResourceRef(ResourceKind.QUEUE, queue)
        DynamoBindings(self.table).bind(Binding(ExchangeName(exchange), target, Pattern.parse(pattern)))
        self.make(NAMES.queue(queue))

    def publish(self, exchange: str, key: str, body: str, **headers: str) -> None:
        deduplication_id = hashlib.sha256(body.encode()).hexdigest() if exchange.endswith(".fifo") else None
        message = MessageProperties.of_publication(key, body, headers).published(deduplication_id=deduplication_id)
        self.send(NAMES.queue(exchange), outgoing(message))

    def send(self, name: str, message: dict[str, Any]) -> None:
        sent = self.sqs.send_message_batch(QueueUrl=self.urls[name], Entries=[batch_entry("0", message)])
        assert not sent.get("Failed")

    def route(self, exchange: str) -> list[str]:
        return self.call(NAMES.queue(exchange))

    def call(self, name: str) -> list[str]:
        """Call the function with a queue's messages, and delete those that succeeded, as Lambda does."""
        records = [record_of(message, name) for message in self.page(name)]
        return self.delete_handled(name, records, handler(batch(*records), None))

    def delivered(self, queue: str) -> list[DeliveredMessage]:
        """Receive and delete all messages of a queue, as its consumer does."""
        name, found = NAMES.queue(queue), []
        while page := self.page(name):
            found += [DeliveredMessage.parse(message_of(message)) for message in page]
            for message in page:
                self.delete(name, message["ReceiptHandle"])
        return found

    def history(self) -> list[tuple[str, str, str | None]]:
        rows = [(row["kind"], row["outcome"], row.get("destination")) for row in written_events(self.s3)]
        return sorted(rows, key=str)

    def counted(self, kind: ResourceKind, name: str) -> dict[str, int]:
        """Return the sums of the counters, of two minutes if one ended during the test."""
        route_wiring.flush()
        minutes = DynamoCounters(self.table).since(ResourceRef(kind, name), datetime(2026, 1, 1, tzinfo=UTC))
        return {counter: sum(getattr(one, counter) for one in minutes) for counter in ("received", "routed", "retried")}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, sqs, exchange_table) -> Iterator[RouteStage]:  # noqa: F811 - fixtures
    found = RouteStage(sqs=sqs, table=exchange_table, s3=create_history_stream())
    settings = {
        "STAGE": "signalbox",
        "EXCHANGE_TABLE": "Exchanges",
        "EXCHANGE_PREFIX": PREFIX,
        "HISTORY_STREAM": STREAM,
        "HISTORY_OVERFLOW_URL": OVERFLOW,
        "EXCHANGE_DEAD_LETTER_QUEUE_URL": found.make(DEAD),
        "EXCHANGE_RETRY_QUEUE_URL": found.make(RETRIES),
        "KEPT_BUCKET": BUCKET,
        "EXCHANGE_ORDERED_RETRY_QUEUE_URL": found.make(ORDERED_RETRIES),
        "ROUTE_TIMEOUT_SECONDS": "30",
        "ROUTE_RETRY_SECONDS": "30",
        "EXCHANGE_RETENTION_SECONDS": "345600",
        "EXCHANGE_CONTROL_ROLE_ID": "AROACONTROL",
        "LIVE_SESSION_ROLE_ID": "AROASESSION",
        "LIVE_TABLE": "Live",
        "LIVE_OUTBOX_URL": found.make("outbox.fifo"),
    }
    for exchange in ("xs", LOG):
        found.declare(exchange)
    with new_instances(monkeypatch, settings, wiring, route_wiring, route):
        yield found


def test_messages_reach_the_queues_that_are_bound_and_are_counted_and_written_down(stage):
    stage.bind("xs", "a.#", queue="q_a.subscribe")
    stage.bind("xs", "#", queue="q_all")
    stage.publish("xs", "a.b", "1", color="red")
    stage.publish("xs", "c", "2")

    assert stage.route("xs") == []

    (found,) = stage.delivered("q_a.subscribe")
    assert (found.key, found.body, found.headers, found.exchange) == ("a.b", "1", {"color": "red"}, "xs")
    assert sorted(one.body for one in stage.delivered("q_all")) == ["1", "2"]
    assert stage.history() == [
        ("routed", "delivered", "q_a.subscribe"),
        ("routed", "delivered", "q_all"),
        ("routed", "delivered", "q_all"),
    ]
    assert stage.counted(ResourceKind.EXCHANGE, "xs") == {"received": 2, "routed": 3, "retried": 0}
    assert stage.counted(ResourceKind.QUEUE, "q_all") == {"received": 2, "routed": 0, "retried": 0}


def test_counters_that_dynamodb_throttles_are_tried_once_when_the_messages_are_done(stage, caplog):
    for number in range(5):
        stage.bind("xs", "#", queue=f"q_{number}")
    stage.publish("xs", "a", "1")
    tried: list[object] = []

    def throttle(request: Any, **_: Any) -> AWSResponse:
        tried.append(request)
        raw = SimpleNamespace(stream=lambda **_: iter([b'{"__type": "ThrottlingException", "message": "x"}']))
        return AWSResponse(request.url, 400, {"content-type": "application/x-amz-json-1.0"}, raw)

    route_wiring.counters().stored.table.client.meta.events.register_first("before-send", throttle)

    with recorded_calls() as calls:
        assert stage.route("xs") == []

    assert len(tried) == 6
    assert calls[-7:] == [*["dynamodb.UpdateItem"] * 6, "sqs.DeleteMessage"]  # which Lambda makes
    assert "6 of 6 counters were not increased" in caplog.text
    assert len(stage.history()) == 5


def test_every_copy_in_a_standard_queue_has_its_publisher_as_group_also_when_retried_without_a_further_call(stage):
    queues = [NAMES.queue("q_all"), NAMES.queue("q_away")]
    for queue in ("q_all", "q_away"):
        stage.bind("xs", "#", queue=queue)
    stage.sqs.delete_queue(QueueUrl=stage.urls[queues[1]])
    for user in ("alice", "bob"):
        stage.send("stage-xs", outgoing(MessageProperties.of_publication("a", user).published(publisher=user)))
    received = stage.page("stage-xs")
    for message in received:
        message["Attributes"]["SenderId"] = "AROACONTROL:control"

    with recorded_calls() as calls:
        handler(batch(*(record_of(message, "stage-xs") for message in received)), None)
    stage.make(queues[1])
    stage.call(RETRIES)

    for queue in queues:
        groups = {message["Body"]: message["Attributes"]["MessageGroupId"] for message in stage.page(queue)}
        assert groups == {"alice": "alice", "bob": "bob"}
    sends = ["sqs.SendMessageBatch"] * 3  # the copies of each queue, and those for the retry queue
    assert [call for call in calls if call.startswith("sqs.")] == sends
    assert calls.count("dynamodb.BatchGetItem") == 2  # names of senders; settings of queues, among them the group


@pytest.mark.parametrize(("exchange", "queue", "retries"), [("xs", "q_a", RETRIES), (LOG, "q_a.fifo", ORDERED_RETRIES)])
def test_copies_that_a_queue_does_not_accept_are_retried_in_order(stage, exchange, queue, retries):
    stage.bind(exchange, "#", queue=queue)
    stage.sqs.delete_queue(QueueUrl=stage.urls[NAMES.queue(queue)])
    stage.publish(exchange, "a", "0")
    assert stage.route(exchange) == []
    stage.make(NAMES.queue(queue))
    stage.publish(exchange, "a", "1")
    assert stage.route(exchange) == []

    assert stage.call(retries) == []

    assert sorted(one.body for one in stage.delivered(queue)) == ["0", "1"]
    assert stage.counted(ResourceKind.QUEUE, queue)["received"] == 2


def measured_ages(output: str) -> list[float]:
    """Return the ages in seconds that were measured as `OldestMessageAge`."""
    lines = [line for line in output.splitlines() if "OldestMessageAge" in line]
    return [age for line in lines for age in json.loads(line)["OldestMessageAge"]]


def test_the_age_of_messages_of_an_unknown_exchange_is_measured(stage, capsys):
    """SQS's own metric leaves out what was received three times."""
    stage.publish("xs", "a", "0")
    (message,) = stage.page(NAMES.queue("xs"))

    left = handler(batch(record_of(message, NAMES.queue("xother"))), None)["batchItemFailures"]

    assert left == [{"itemIdentifier": message["MessageId"]}]
    assert len(measured_ages(capsys.readouterr().out)) == 1


def hidden_by(client: Any) -> list[Any]:
    """Return the list to which each later call of a client that hides messages adds its parameters."""
    calls: list[Any] = []
    client.meta.events.register(
        "provide-client-params.sqs.ChangeMessageVisibilityBatch", lambda params, **_: calls.append(params)
    )
    return calls


def test_a_batch_without_time_for_denies_comes_again_at_once(stage, monkeypatch):
    def route_late(*_):
        raise DeniesUnread("not all are read")

    monkeypatch.setattr(Router, "route", route_late)
    for body in ("0", "1"):
        stage.publish(LOG, "a", body)
    hidden = hidden_by(instance.sqs())

    left = stage.route(LOG)

    assert len(left) == 2
    (call,) = hidden
    assert call["QueueUrl"] == stage.urls[NAMES.queue(LOG)]
    assert [one["VisibilityTimeout"] for one in call["Entries"]] == [1, 1]


def test_copies_wait_for_a_queue_for_as_long_as_it_takes_and_their_age_is_measured(stage, monkeypatch, capsys):
    stage.bind("xs", "#", queue="q_a")
    send, away = SqsQueueSender.send, [NAMES.queue("q_a")]

    def sent(sender, one):
        if one.destination in away:
            raise EffectFailed("not now")
        return send(sender, one)

    monkeypatch.setattr(SqsQueueSender, "send", sent)
    stage.publish("xs", "a", "0")
    stage.route("xs")
    (waiting,) = stage.page(RETRIES)
    record = record_of(waiting, RETRIES)
    sent_at = datetime.now(UTC) - timedelta(hours=9)
    record["attributes"] |= received(1000) | {"SentTimestamp": str(round(sent_at.timestamp() * 1000))}
    capsys.readouterr()

    pauses = hidden_by(instance.sqs())

    left = handler(batch(record), None)["batchItemFailures"]

    assert left == [{"itemIdentifier": waiting["MessageId"]}]
    entry = {"Id": "0", "ReceiptHandle": waiting["ReceiptHandle"], "VisibilityTimeout": 90}
    assert pauses == [{"QueueUrl": stage.urls[RETRIES], "Entries": [entry]}]
    assert stage.bodies(DEAD) == []
    (age,) = measured_ages(capsys.readouterr().out)
    assert age >= 9 * 3600
    away.clear()
    assert handler(batch(record), None) == {"batchItemFailures": []}
    assert [one.body for one in stage.delivered("q_a")] == ["0"]


def received(times: int) -> dict[str, str]:
    return {"ApproximateReceiveCount": str(times)}


def suspects(stage: RouteStage, name: str, *, times: int = 1000) -> list[Event]:
    """Return the records of a queue's messages, as if they were received this often."""
    records = [record_of(message, name) for message in stage.page(name)]
    for record in records:
        record["attributes"] |= received(times)
    return records


def deadly_to(monkeypatch: pytest.MonkeyPatch, reader: str) -> None:
    """Have a reader of messages end its process at the body `poison`."""
    read = getattr(route, reader)

    def deadly(message, *arguments, **named):
        if message.body == "poison":
            os.kill(os.getpid(), signal.SIGSEGV)
        return read(message, *arguments, **named)

    monkeypatch.setattr(route, reader, deadly)


@pytest.mark.parametrize(("exchange", "queue"), [("xs", "q_a"), (LOG, "q_a.fifo")])
def test_a_message_that_stops_its_reader_is_dead_lettered_and_the_others_are_routed(
    stage, monkeypatch, exchange, queue
):
    stage.bind(exchange, "#", queue=queue)
    for body in ("before", "poison", "behind"):
        stage.publish(exchange, "a", body)
    deadly_to(monkeypatch, "read_publication")

    assert handler(batch(*suspects(stage, NAMES.queue(exchange))), None) == {"batchItemFailures": []}

    assert sorted(one.body for one in stage.delivered(queue)) == ["before", "behind"]
    (dead,) = stage.page(dead_letter_name(NAMES.queue(exchange)))
    assert dead["Body"] == "poison"
    assert dead["MessageAttributes"]["Reason"]["StringValue"] == "reading it ends the process with SIGSEGV"


def test_a_copy_that_stops_its_reader_is_dead_lettered(stage, monkeypatch):
    stage.bind("xs", "#", queue="q_a")
    stage.sqs.delete_queue(QueueUrl=stage.urls[NAMES.queue("q_a")])
    stage.publish("xs", "a", "poison")
    stage.route("xs")
    deadly_to(monkeypatch, "read_retry")

    assert handler(batch(*suspects(stage, RETRIES)), None) == {"batchItemFailures": []}

    assert stage.bodies(DEAD) == ["poison"]


def test_a_message_is_read_alone_without_creating_clients_again(stage, monkeypatch):
    stage.bind("xs", "#", queue="q_a")
    stage.publish("xs", "a", "hello")
    parent, router = os.getpid(), route_wiring.router

    def created():
        assert os.getpid() == parent
        return router()

    monkeypatch.setattr(route_wiring, "router", created)

    assert handler(batch(*suspects(stage, NAMES.queue("xs"))), None) == {"batchItemFailures": []}

    assert [one.body for one in stage.delivered("q_a")] == ["hello"]


@pytest.mark.parametrize(("exchange", "queue"), [("xs", "q_a"), (LOG, "q_a.fifo")])
def test_a_message_that_always_fails_delays_its_own_group_only_and_is_kept(stage, monkeypatch, exchange, queue):
    stage.bind(exchange, "#", queue=queue)
    for key, body in (("a", "before"), ("b", "failing"), ("b", "behind"), ("c", "other")):
        stage.publish(exchange, key, body)
    dispatch = CopyDispatcher.deliver

    def deliver(dispatcher, copies):
        found = list(copies)
        if any(one.message.body == "failing" for one in found):
            raise ValueError("a defect")
        return dispatch(dispatcher, found)

    monkeypatch.setattr(CopyDispatcher, "deliver", deliver)
    records = suspects(stage, NAMES.queue(exchange))

    left = {one["itemIdentifier"] for one in handler(batch(*records), None)["batchItemFailures"]}

    kept = {record["body"] for record in records if record["messageId"] in left}
    assert kept == ({"failing", "behind"} if exchange == LOG else {"failing"})
    assert {one.body for one in stage.delivered(queue)} == {"before", "other", "behind"} - kept
    assert stage.bodies(dead_letter_name(NAMES.queue(exchange))) == []


def test_a_batch_that_fails_rarely_is_not_taken_apart(stage, monkeypatch):
    for body in ("0", "1"):
        stage.publish("xs", "a", body)
    monkeypatch.setattr(Router, "route", failing)

    records = suspects(stage, NAMES.queue("xs"), times=4)
    with pytest.raises(ValueError, match="of 2"):
        handler(batch(*records), None)
    for record in records:
        record["attributes"] |= received(5)
    with pytest.raises(UnavailableError, match="none of 2 messages"):
        handler(batch(*records), None)


def failing(_: Router, messages: Any, *__: Any) -> None:
    raise ValueError(f"of {len(messages)}")


def test_calls_that_are_made_side_by_side_have_all_ended_when_one_has_failed(stage):
    ended: list[int] = []
    is_begun = threading.Barrier(2, timeout=10)

    def call(number: int) -> None:
        is_begun.wait()
        if number == 0:
            raise ValueError("no")
        ended.append(number)

    with pytest.raises(ValueError, match="no"):
        threads.parallel_map(call, range(4))

    assert sorted(ended) == [1, 2, 3]


def test_the_copies_of_a_kept_queue_are_in_the_bucket_with_one_more_call(stage):
    stage.bind("xs", "#", queue="q_all")
    stage.publish("xs", "a", "1")
    stage.route("xs")
    stage.delivered("q_all")
    stage.publish("xs", "a", "2")
    with recorded_calls() as unkept:
        stage.route("xs")
    assert not {name for name in unkept if name.startswith("s3.")}
    stage.delivered("q_all")
    assert DynamoQueues(stage.table).mark(DeclaredName("q_all"), timedelta(hours=1))
    clear_caches(wiring, route_wiring, route)

    stage.publish("xs", "a", "3")
    with recorded_calls() as kept:
        assert stage.route("xs") == []

    assert [name for name in kept if name.startswith("s3.")] == ["s3.PutObject"]
    (copy,) = stage.delivered("q_all")
    (found,) = stage.s3.list_objects_v2(Bucket=BUCKET, Prefix="kept/")["Contents"]
    text = stage.s3.get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read().decode()
    assert [(one.message_id, one.body) for one in read_batch(text)] == [(copy.message_id, "3")]
    assert ("kept", "stored") in [(event["kind"], event["outcome"]) for event in written_events(stage.s3)]


def test_without_history_and_live_messages_are_routed_and_nothing_is_written_down(stage, monkeypatch):
    stage.bind("xs", "#", queue="q_all")
    assert DynamoQueues(stage.table).mark(DeclaredName("q_all"), timedelta(hours=1))
    for name in ("HISTORY_STREAM", "HISTORY_OVERFLOW_URL", "KEPT_BUCKET"):
        monkeypatch.delenv(name)
    for name in ("LIVE_TABLE", "LIVE_OUTBOX_URL", "LIVE_SESSION_ROLE_ID"):
        monkeypatch.delenv(name)
    clear_caches(wiring, route_wiring, route)

    stage.publish("xs", "a", "1")
    with recorded_calls() as calls:
        assert stage.route("xs") == []

    assert [copy.body for copy in stage.delivered("q_all")] == ["1"]
    assert not {name for name in calls if name.startswith(("s3.", "firehose."))}
