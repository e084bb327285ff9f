"""Connection snapshots in DynamoDB."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.exchange.routing import DynamoHeads
from signalbox.aws.live.account_items import grants_item
from signalbox.aws.live.connection_snapshots import DynamoConnectionSnapshots
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.exchange.model.records import Exchange, LiveSettings, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head, numbered
from signalbox.live.admin.grants import Grant
from signalbox.live.outbox.decisions import OutboxState, Watermarks
from signalbox.live.outbox.items import ItemId
from signalbox.live.outbox.totals import NO_TOTALS
from signalbox.live.session.state import ConnectionId, State, opened
from signalbox.live.wamp.authentication import AuthMethod, Identity
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
REALM, JOE, CONNECTION = ExchangeName("xs_trial.fifo"), UserName("joe"), ConnectionId("c=")
TOPIC = RoutingKey("trial.a")
GRANT = Grant(Right.READ, TopicPattern.parse("trial.", MatchPolicy.PREFIX))
OPENED = opened(CONNECTION, now=NOW)
JOINED = replace(
    OPENED, state=State.JOINED, realm=REALM, session=7, identity=Identity("joe", Role.SUBSCRIBER, AuthMethod.TICKET)
)


@pytest.fixture
def snapshots(live_table, exchange_table) -> DynamoConnectionSnapshots:
    DynamoExchanges(exchange_table).create(Exchange(REALM, None, NOW, live=LiveSettings()))
    DynamoUsers(exchange_table).put(User(JOE, Role.SUBSCRIBER, Ownership.STRICT, NOW, "AIDAJOE"))
    live_table.put_item(Item=grants_item(REALM, JOE, [GRANT], version=1))
    return DynamoConnectionSnapshots(live_table, exchange_table)


def test_the_snapshot_of_an_unknown_connection_is_empty(snapshots) -> None:
    snapshot = snapshots.read(CONNECTION, owner=None)

    assert (snapshot.session, snapshot.outbox, snapshot.live) == (None, OutboxState(), None)
    assert not snapshot.rights.are_any


@pytest.mark.parametrize("owner", [None, (REALM, JOE), (REALM, UserName("eve"))])
def test_a_snapshot_is_complete_whatever_owner_the_caller_gives(snapshots, owner) -> None:
    DynamoSessions(snapshots.live).open(JOINED)

    snapshot = snapshots.read(CONNECTION, owner=owner)

    assert (snapshot.session, snapshot.live) == (JOINED, LiveSettings())
    assert (snapshot.rights.may_receive(TOPIC), snapshot.rights.may_receive(RoutingKey("other"))) == (True, False)


def test_unjoined_sessions_and_deleted_users_have_no_rights(snapshots) -> None:
    DynamoSessions(snapshots.live).open(OPENED)
    assert not snapshots.read(CONNECTION, owner=None).rights.are_any

    eve = Identity("eve", Role.ADMIN, AuthMethod.TICKET)
    DynamoSessions(snapshots.live).open(replace(JOINED, connection=ConnectionId("d="), identity=eve))
    assert not snapshots.read(ConnectionId("d="), owner=None).rights.are_any


def test_an_exchange_that_is_being_deleted_is_not_live(snapshots, exchange_table) -> None:
    DynamoSessions(snapshots.live).open(JOINED)
    exchange_table.update_item(
        Key={"pk": f"exchange#{REALM}", "sk": "exchange"},
        UpdateExpression="SET is_leaving = :yes",
        ExpressionAttributeValues={":yes": True},
    )

    assert snapshots.read(CONNECTION, owner=(REALM, JOE)).live is None


def test_an_outbox_state_round_trips(snapshots) -> None:
    one = SubscriptionId(1)
    outbox = OutboxState(
        subscribed=frozenset({one, SubscriptionId(2)}),
        unconfirmed_reply=ItemId("3"),
        done=(ItemId("1"), ItemId("2")),
        pending_backfills={SubscriptionId(2): {TOPIC: 4}},
        watermarks={one: Watermarks(NOW, {TOPIC: 9, RoutingKey(""): 1})},
        caught_up_at=NOW,
        progress=(ItemId("4"), 5),
        totals=replace(NO_TOTALS.plus(events=1, replies=2, size=3, lags=[timedelta(seconds=4)]), noted_at=NOW),
    )

    for kept in (outbox, OutboxState()):
        snapshots.save(CONNECTION, kept)

        assert snapshots.read(CONNECTION, owner=None).outbox == kept


def test_the_newest_number_of_a_topic_is_read_from_its_head(snapshots, exchange_table) -> None:
    DynamoHeads(exchange_table).save(REALM, TOPIC, numbered(Head(), map(MessageId, "abc")), replacing=Head())

    assert (snapshots.newest(REALM, TOPIC), snapshots.newest(REALM, RoutingKey("other"))) == (3, 0)
