"""The function `route` for a live exchange: logs and outboxes in addition to queues."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lambdas.exchange import route_wiring
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.subscribers import DynamoSubscribers
from signalbox.aws.shared.messages import batch_entry
from signalbox.exchange.messages.properties import LIVE, MessageProperties
from signalbox.exchange.model.names import dead_letter_name
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import EventBatch, Reply, parse_item
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.publication_metadata import AcknowledgementTarget, PublicationMetadata, metadata_text
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import PublicationId, RequestId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import Attribute, outgoing
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.exchange.test_route import NAMES, RouteStage, stage  # noqa: F401 - fixture

REALM = ExchangeName("xs_trial.fifo")
JOE = Listener(SessionId(7), "joe", "subscriber")


@pytest.fixture
def realm(stage: RouteStage, live_table) -> RouteStage:  # noqa: F811 - fixtures
    route_wiring.distributor.cache_clear()
    DynamoExchanges(stage.table).create(ExchangeRecord(REALM, None, datetime.now(UTC), live=LiveSettings()))
    stage.make(NAMES.queue(REALM))
    stage.make(dead_letter_name(NAMES.queue(REALM)))
    return stage


def subscribe(table: Any, uri: str, match: MatchPolicy = MatchPolicy.EXACT, *, connection: str = "c") -> None:
    now = datetime.now(UTC)
    subscriber = Subscriber(ConnectionId(connection), TopicPattern.parse(uri, match), JOE)
    DynamoSubscribers(table).attach(REALM, subscriber, at=now, expires_at=now + timedelta(hours=2))


def items(stage: RouteStage) -> list[Any]:  # noqa: F811 - a type
    return [(one["Attributes"]["MessageGroupId"], parse_item(one["Body"])) for one in stage.page("outbox.fifo")]


def test_an_event_stands_in_its_log_and_in_the_outbox_of_who_is_subscribed(realm, live_table) -> None:  # noqa: F811
    subscribe(live_table, "trial.", MatchPolicy.PREFIX)
    realm.bind(REALM, "#", queue="q_log.fifo")
    realm.publish(REALM, "trial.a", json.dumps({"line": 1}), color="red")

    assert realm.route(REALM) == []

    ((connection, bundle),) = items(realm)
    assert connection == "c"
    assert isinstance(bundle, EventBatch)
    (addressed,) = bundle.events
    assert (bundle.realm, bundle.user, addressed.pattern.uri) == (REALM, "joe", "trial.")
    logged = DynamoTopicLog(live_table).events(REALM, RoutingKey("trial.a"), live=LiveSettings(), now=datetime.now(UTC))
    assert [replace(one, sqs_sequence=None) for one in logged] == [addressed.event]
    assert (logged[0].payload.arguments, logged[0].sequence, logged[0].headers) == (({"line": 1},), 1, {"color": "red"})
    assert [one.body for one in realm.delivered("q_log.fifo")] == ['{"line": 1}']


def test_a_wamp_publisher_is_acknowledged_when_the_event_is_stored(realm, live_table, monkeypatch) -> None:  # noqa: F811
    sender = "AIDAIT2UOQQY3AUEKVGXU"  # the id that moto gives all callers
    monkeypatch.setenv("LIVE_SESSION_ROLE_ID", sender)
    route_wiring.router.cache_clear()
    note = PublicationMetadata(PublicationId(42), acknowledge_to=AcknowledgementTarget(ConnectionId("p"), RequestId(3)))
    properties = MessageProperties.of_publication("trial.a", "1")
    as_sent = properties.published(publisher="joe", deduplication_id="d")
    message = outgoing(as_sent)
    message["MessageAttributes"] |= {LIVE: Attribute("String", metadata_text(note)).value}  # type: ignore[operator]
    realm.sqs.send_message_batch(QueueUrl=realm.urls[NAMES.queue(REALM)], Entries=[batch_entry("0", message)])
    subscribe(live_table, "trial.a")

    realm.route(REALM)

    found = dict(items(realm))
    assert isinstance(found["c"], EventBatch)
    assert found["c"].events[0].event.publication == 42
    assert isinstance(found["p"], Reply)
    assert json.loads(found["p"].message) == [17, 3, 42]
