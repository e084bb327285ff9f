"""The function that posts outbox items to connections, in order and only with the right."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from lambdas.exchange import wiring as exchange_wiring
from lambdas.live import deliver, deliver_wiring, wiring
from lambdas.live.deliver import handler
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.live.account_items import grants_item
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.effects import Post
from signalbox.live.model.state import ConnectionId, PastRefused, Session, SessionState
from signalbox.live.outbox.items import (
    BackfillRequest,
    CloseRequest,
    EventBatch,
    ItemId,
    OutboxItem,
    SubscriptionEvent,
    parse_item,
    reply_item,
)
from signalbox.live.outbox.ports import PostResult
from signalbox.live.rights.grants import Grant
from signalbox.live.session.inbox import parse
from signalbox.live.wamp.authentication import AuthMethod, Identity
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId, SessionId, Subscribed
from signalbox.live.wamp.options import BackfillStart, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.fakes.live import MemoryConnections
from tests.handlers.environment import (
    OVERFLOW,
    STREAM,
    Context,
    Queues,
    create_history_stream,
    dead_letter_reason,
    new_instances,
    written_events,
)
from tests.handlers.recorded_events import batch, record_of

REALM, JOE, CONNECTION = ExchangeName("xs_trial.fifo"), UserName("joe"), ConnectionId("c=")
PATTERN = TopicPattern.parse("trial.", MatchPolicy.PREFIX)
GRANT = Grant(Right.READ, PATTERN)
OUTBOX, INBOX, DEAD = "outbox.fifo", "inbox.fifo", "dead.fifo"


@dataclass(kw_only=True)
class DeliverStage(Queues):
    live: Any
    s3: Any
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    context: Context = field(default_factory=lambda: Context(10_000))

    def join(self, connection: ConnectionId = CONNECTION) -> None:
        now = datetime.now(UTC)
        identity = Identity("joe", Role.SUBSCRIBER, AuthMethod.TICKET)
        subscriptions = {PATTERN.subscription_id: PATTERN}
        DynamoSessions(self.live).open(
            Session(
                connection,
                opened_at=now,
                deadline=now,
                state=SessionState.JOINED,
                realm=REALM,
                session=SessionId(7),
                identity=identity,
                subscriptions=subscriptions,
            )
        )

    def put(self, *items: Any, connection: ConnectionId = CONNECTION) -> None:
        SqsOutboxes(self.sqs, self.urls[OUTBOX]).put(connection, items)

    def grant(self, *grants: Grant) -> None:
        self.live.put_item(Item=grants_item(REALM, JOE, grants, version=1))

    def log(self, *events: LoggedEvent) -> None:
        DynamoTopicLog(self.live).append(REALM, events, live=LiveSettings())

    def put_unreadable(self, body: str) -> None:
        """Send a message to the connection's outbox that is not an item."""
        self.sqs.send_message(
            QueueUrl=self.urls[OUTBOX], MessageBody=body, MessageGroupId=CONNECTION, MessageDeduplicationId=uuid4().hex
        )

    def received(self) -> dict[str, Any]:
        """Return the event with which Lambda invokes the function."""
        return batch(*(record_of(message, OUTBOX) for message in self.page(OUTBOX, wait=10)))

    def deliver(self) -> list[str]:
        """Invoke the function with the queued messages, and delete the handled ones as Lambda does."""
        event = self.received()
        return self.delete_handled(OUTBOX, event["Records"], handler(event, self.context))

    def dead_letters(self) -> list[Any]:
        return self.page(DEAD)

    def posted(self, connection: ConnectionId = CONNECTION) -> list[Any]:
        return [json.loads(text) for text in self.connections.posted[connection]]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, sqs, exchange_table, live_table) -> Iterator[DeliverStage]:  # noqa: F811
    found = DeliverStage(sqs=sqs, live=live_table, s3=create_history_stream())
    settings = {
        "STAGE": "signalbox",
        "LIVE_TABLE": "Live",
        "EXCHANGE_TABLE": "Exchanges",
        "EXCHANGE_PREFIX": "",
        "HISTORY_STREAM": STREAM,
        "HISTORY_OVERFLOW_URL": OVERFLOW,
        "LIVE_OUTBOX_URL": found.make(OUTBOX),
        "LIVE_INBOX_URL": found.make(INBOX),
        "LIVE_CONNECTIONS_URL": "/connections",
        "LIVE_VISIBILITY_SECONDS": "60",
        "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL": found.make(DEAD),
    }
    monkeypatch.setattr(deliver_wiring, "connections", lambda: found.connections)
    now = datetime.now(UTC)
    DynamoExchanges(exchange_table).create(ExchangeRecord(REALM, None, now, live=LiveSettings()))
    DynamoUsers(exchange_table).put(User(JOE, Role.SUBSCRIBER, Ownership.STRICT, now, "AIDAJOE"))
    found.grant(GRANT)
    found.join()
    with new_instances(monkeypatch, settings, exchange_wiring, wiring, deliver_wiring, deliver):
        yield found


def subscribed(*, expects_backfill: bool = False) -> Any:
    message = Subscribed(RequestId(1), PATTERN.subscription_id)
    return reply_item(Post(message), ItemId("1"), expects_backfill=expects_backfill)


def backfill(history: BackfillStart) -> BackfillRequest:
    return BackfillRequest(ItemId("2"), PATTERN, get_retained=False, history=history)


def event(number: int, *, topic: str = "trial.a") -> LoggedEvent:
    payload = Payload((number,))
    return LoggedEvent(PublicationId(number), RoutingKey(topic), datetime.now(UTC), payload, sequence=number)


def event_batch(*events: LoggedEvent) -> EventBatch:
    item_id = ItemId(" ".join(str(one.publication) for one in events))
    return EventBatch(item_id, REALM, JOE, tuple(SubscriptionEvent(PATTERN, one) for one in events))


def test_replies_and_events_are_posted_in_their_order(stage: DeliverStage) -> None:
    stage.put(subscribed(), event_batch(event(1), event(2)), event_batch(event(3)))

    assert stage.deliver() == []

    assert [(message[0], message[-1]) for message in stage.posted()] == [
        (33, PATTERN.subscription_id),
        (36, [1]),
        (36, [2]),
        (36, [3]),
    ]
    (row,) = written_events(stage.s3)
    assert (row["capability"], row["kind"], row["outcome"], row["labels"]["events"]) == (
        "live",
        "delivered",
        "posted",
        "3",
    )


def test_a_request_of_too_many_past_events_ends_its_subscription_and_not_the_session(stage: DeliverStage) -> None:
    bomb = Payload(([[]] * 40_000,))  # 200 bytes in the table, and 3 MB in memory
    stage.log(*(replace(event(number), payload=bomb) for number in range(1, 61)))
    stage.put(subscribed(expects_backfill=True), backfill(LastEvents(100)), event_batch(event(61)))

    assert stage.deliver() == []

    (signal_,) = stage.sqs.receive_message(QueueUrl=stage.sqs.get_queue_url(QueueName="inbox.fifo")["QueueUrl"])[
        "Messages"
    ]
    refused = parse(signal_["Body"]).received
    assert isinstance(refused, PastRefused)
    assert refused.subscription == PATTERN.subscription_id
    assert [message[0] for message in stage.posted()] == [33]
    assert stage.connections.closed == set()


def test_the_backfill_comes_first_and_live_events_once(stage: DeliverStage) -> None:
    stage.log(*(event(number) for number in range(1, 5)))
    stage.put(subscribed(expects_backfill=True), event_batch(event(3)), backfill(LastEvents(2)))
    stage.put(event_batch(event(4)), event_batch(event(5)))

    stage.deliver()

    assert [message[-1][0] for message in stage.posted()[1:]] == [3, 4, 5]


def test_a_closed_session_is_disconnected_after_its_last_message_and_logged(stage: DeliverStage, caplog) -> None:
    caplog.set_level("INFO")
    stage.put(subscribed(), event_batch(event(5)), CloseRequest(ItemId("2")))

    stage.deliver()

    assert (len(stage.posted()), stage.connections.closed) == (2, {CONNECTION})
    (line,) = (json.loads(one.message) for one in caplog.records if one.name == deliver.__name__)
    assert (line["user"], line["realm"], line["events"], line["replies"]) == ("joe", REALM, 1, 1)
    assert line["lag_max_ms"] < line["lag_p50_ms"] + 10_000


def test_a_blocked_connection_does_not_delay_others(stage: DeliverStage) -> None:
    other = ConnectionId("d=")
    stage.join(other)
    stage.connections.results = [PostResult.BUSY]
    stage.put(subscribed(), event_batch(event(1)))
    stage.deliver()
    stage.put(subscribed(), connection=other)

    stage.deliver()

    assert (stage.posted(), len(stage.posted(other))) == ([], 1)
    assert [(row["outcome"], row["reason"]) for row in written_events(stage.s3)] == [
        ("failed", "the connection takes nothing now")
    ]


def test_no_item_begins_out_of_time_and_the_next_invocation_continues(stage: DeliverStage) -> None:
    stage.put(subscribed(), event_batch(*map(event, range(1, 4))))
    stage.context.remaining = 0

    assert len(stage.deliver()) == 2
    assert stage.posted() == []
    stage.context.remaining = 10_000
    assert stage.deliver() == []

    assert [message[-1] for message in stage.posted()[1:]] == [[1], [2], [3]]


def test_an_unreadable_message_is_dead_lettered_with_its_reason_and_blocks_nothing(stage: DeliverStage) -> None:
    stage.put_unreadable("{}")
    stage.put(subscribed())

    assert stage.deliver() == []

    assert len(stage.posted()) == 1
    (letter,) = stage.dead_letters()
    assert (letter["Body"], letter["Attributes"]["MessageGroupId"]) == ("{}", CONNECTION)
    assert dead_letter_reason(letter) == "a message of 2 characters is not an outbox item: KeyError('kind')"
    (row,) = written_events(stage.s3)
    assert (row["kind"], row["outcome"], row["reason"]) == ("dead_letter", "dead", "nothing that an outbox has")
    assert row["message_id"] == letter["MessageAttributes"]["OriginalMessageId"]["StringValue"]


def test_an_item_that_stops_its_reader_is_dead_lettered_and_blocks_nothing(stage: DeliverStage, monkeypatch) -> None:
    stage.put_unreadable("poison")
    stage.put(subscribed())
    event = stage.received()
    for record in event["Records"]:
        record["attributes"]["ApproximateReceiveCount"] = "5"

    def parse(body: str) -> OutboxItem:
        if body == "poison":
            os.kill(os.getpid(), signal.SIGSEGV)
        return parse_item(body)

    monkeypatch.setattr(deliver, "parse_item", parse)

    assert handler(event, stage.context) == {"batchItemFailures": []}

    assert len(stage.posted()) == 1
    (letter,) = stage.dead_letters()
    assert (letter["Body"], dead_letter_reason(letter)) == ("poison", "reading it ends the process with SIGSEGV")


def test_a_redelivered_message_is_dead_lettered_once(stage: DeliverStage) -> None:
    stage.put_unreadable("{}")
    event = stage.received()

    for _ in range(2):  # the first response does not reach Lambda
        assert handler(event, stage.context) == {"batchItemFailures": []}

    assert len(stage.dead_letters()) == 1


def test_a_message_that_cannot_be_dead_lettered_is_redelivered_and_blocks_nothing(stage: DeliverStage) -> None:
    stage.sqs.delete_queue(QueueUrl=stage.urls[DEAD])
    stage.put_unreadable("{}")
    stage.put(subscribed())

    (left,) = stage.deliver()

    assert len(stage.posted()) == 1
    assert written_events(stage.s3) == []
    stage.make(DEAD)
    assert stage.deliver() == []  # before its visibility timeout
    (letter,) = stage.dead_letters()
    assert letter["MessageAttributes"]["OriginalMessageId"]["StringValue"] == left


def test_items_of_an_unreadable_connection_are_redelivered(stage: DeliverStage, monkeypatch) -> None:
    monkeypatch.setattr(deliver_wiring, "outbox_writer", lambda: None)  # so that every delivery fails
    stage.put(subscribed())

    assert len(stage.deliver()) == 1
