"""How connections stand, over DynamoDB."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.exchange.routing_table import DynamoHeads
from signalbox.aws.live.account_items import grants_item
from signalbox.aws.live.connection_snapshots import DynamoDesks
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.exchange.model.records import Exchange, LiveSettings, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head, numbered
from signalbox.live.admin.grants import Grant
from signalbox.live.outbox.decisions import Marks, Outbox
from signalbox.live.outbox.items import ItemId
from signalbox.live.outbox.totals import NOTHING
from signalbox.live.session.state import ConnectionId, State, opened
from signalbox.live.wamp.authentication import Identity, Method
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.patterns import Match, TopicPattern
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
REALM, JOE, CONNECTION = ExchangeName("xs_trial.fifo"), UserName("joe"), ConnectionId("c=")
TOPIC = RoutingKey("trial.a")
GRANT = Grant(Right.READ, TopicPattern.parse("trial.", Match.PREFIX))
OPENED = opened(CONNECTION, now=NOW)
JOINED = replace(
    OPENED, state=State.JOINED, realm=REALM, session=7, identity=Identity("joe", Role.SUBSCRIBER, Method.TICKET)
)


@pytest.fixture
def desks(live_table, exchange_table) -> DynamoDesks:
    DynamoExchanges(exchange_table).create(Exchange(REALM, None, NOW, live=LiveSettings()))
    DynamoUsers(exchange_table).put(User(JOE, Role.SUBSCRIBER, Ownership.STRICT, NOW, "AIDAJOE"))
    live_table.put_item(Item=grants_item(REALM, JOE, [GRANT], version=1))
    return DynamoDesks(live_table, exchange_table)


def test_nothing_is_known_of_a_connection_that_there_is_not(desks) -> None:
    desk = desks.read(CONNECTION, belongs_to=None)

    assert (desk.session, desk.outbox, desk.live) == (None, Outbox(), None)
    assert not desk.rights.are_any


@pytest.mark.parametrize("belongs_to", [None, (REALM, JOE), (REALM, UserName("eve"))])
def test_a_desk_has_all_that_decides_whoever_it_was_said_to_belong_to(desks, belongs_to) -> None:
    DynamoSessions(desks.live).open(JOINED)

    desk = desks.read(CONNECTION, belongs_to=belongs_to)

    assert (desk.session, desk.live) == (JOINED, LiveSettings())
    assert (desk.rights.may_receive(TOPIC), desk.rights.may_receive(RoutingKey("other"))) == (True, False)


def test_who_has_not_joined_has_no_rights_and_neither_has_who_is_no_user_any_more(desks) -> None:
    DynamoSessions(desks.live).open(OPENED)
    assert not desks.read(CONNECTION, belongs_to=None).rights.are_any

    eve = Identity("eve", Role.ADMIN, Method.TICKET)
    DynamoSessions(desks.live).open(replace(JOINED, connection=ConnectionId("d="), identity=eve))
    assert not desks.read(ConnectionId("d="), belongs_to=None).rights.are_any


def test_an_exchange_that_is_leaving_is_no_realm(desks, exchange_table) -> None:
    DynamoSessions(desks.live).open(JOINED)
    exchange_table.update_item(
        Key={"pk": f"exchange#{REALM}", "sk": "exchange"},
        UpdateExpression="SET is_leaving = :yes",
        ExpressionAttributeValues={":yes": True},
    )

    assert desks.read(CONNECTION, belongs_to=(REALM, JOE)).live is None


def test_an_outbox_is_read_as_it_was_kept(desks) -> None:
    one = SubscriptionId(1)
    outbox = Outbox(
        subscribed=frozenset({one, SubscriptionId(2)}),
        begun=ItemId("3"),
        done=(ItemId("1"), ItemId("2")),
        awaited={SubscriptionId(2): {TOPIC: 4}},
        marks={one: Marks(NOW, {TOPIC: 9, RoutingKey(""): 1})},
        caught_up_at=NOW,
        progress=(ItemId("4"), 5),
        totals=replace(NOTHING.and_more(events=1, replies=2, size=3, lags=[timedelta(seconds=4)]), noted_at=NOW),
    )

    for kept in (outbox, Outbox()):
        desks.save(CONNECTION, kept)

        assert desks.read(CONNECTION, belongs_to=None).outbox == kept


def test_the_newest_number_of_a_topic_is_that_of_its_head(desks, exchange_table) -> None:
    DynamoHeads(exchange_table).save(REALM, TOPIC, numbered(Head(), map(MessageId, "abc")), replacing=Head())

    assert (desks.newest(REALM, TOPIC), desks.newest(REALM, RoutingKey("other"))) == (3, 0)
