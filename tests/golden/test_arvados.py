"""Golden files of the stored items and messages of live for Arvados' clients (see `files.py`)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.exchange.items import EXCHANGE_RECORD
from signalbox.aws.live import connection_snapshots
from signalbox.aws.live.connection_snapshots import DynamoConnectionSnapshots
from signalbox.aws.live.inbox import SqsInbox
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings
from signalbox.live.arvados.filters import LogSubscription
from signalbox.live.arvados.row_state import RowState
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model import events
from signalbox.live.model.effects import CatchUp, PostText, RefuseFrame
from signalbox.live.model.state import Admitted, Dialect, Session, SessionState
from signalbox.live.outbox.decisions import OutboxState
from signalbox.live.outbox.items import CatchUpRequest, Reply, parse_item
from signalbox.live.session.arvados import EVERY_TOPIC
from signalbox.live.session.inbox import parse
from signalbox.live.wamp.authentication import AuthMethod, Identity
from signalbox.live.wamp.messages import Payload
from tests.golden.files import AT, FixedDatetime, RecordingSqs, golden, store, stored_items

REALM = "xs_live.fifo"
PREFIX = "https://sqs.us-east-1.amazonaws.com/111122223333/"
LIVE = LiveSettings(arvados=True)
SESSION = Session(
    "c1=",
    opened_at=AT,
    deadline=AT + timedelta(minutes=9),
    state=SessionState.JOINED,
    realm=REALM,
    session=7,
    identity=Identity("bob", "subscriber", AuthMethod.TICKET),
    subscriptions={EVERY_TOPIC.subscription_id: EVERY_TOPIC},
    frames=("f0",),
    pending={
        "f0": (PostText("{}"), PostText("{}", begins=3, ends=4, expects_catch_up=True), CatchUp(3), RefuseFrame())
    },
    dialect=Dialect.ARVADOS,
    log_subscriptions=(LogSubscription(3, '[["event_type","in",["create"]]]', 17), LogSubscription(4)),
)
OUTBOX = OutboxState(subscribed=frozenset({3}), rows=RowState(5, ((1, 3), (7, 7)), AT, ((9, 9),)))
ROW = LoggedEvent(1, "a.b", AT, Payload(({"id": 17},)), sequence=1)
ITEMS = {"catch up": CatchUpRequest("i-1", 3), "status": Reply("i-2", '{"status":200}', begins=3)}


def test_items_are_written_as_in_the_golden_file(live_table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_snapshots, "datetime", FixedDatetime)
    DynamoSessions(live_table).open(SESSION)
    DynamoTopicLog(live_table).append(REALM, [ROW], live=LIVE)
    DynamoConnectionSnapshots(live_table, live_table).save("c1=", OUTBOX, session=None)

    assert stored_items(live_table) == golden("live", "arvados")["items"]


def test_items_of_the_golden_file_are_read(live_table, exchange_table) -> None:
    store(live_table, golden("live", "arvados")["items"])

    stored = DynamoSessions(live_table).find("c1=")
    assert stored is not None
    assert stored.session == SESSION
    assert list(DynamoTopicLog(live_table).rows_after(REALM, 16, now=AT)) == [ROW]
    snapshot = DynamoConnectionSnapshots(live_table, exchange_table).read("c1=", owner=None)
    assert replace(snapshot.outbox, totals=OUTBOX.totals) == OUTBOX


def test_the_realm_of_arvados_is_stored_as_in_the_golden_file(exchange_table) -> None:
    exchanges = DynamoExchanges(exchange_table)
    exchange = ExchangeRecord(REALM, None, AT, live=LIVE)
    exchanges.make_arvados_realm(REALM, replacing=None)
    exchanges.create(exchange)

    assert stored_items(exchange_table) == golden("live", "arvados")["exchange"]
    assert EXCHANGE_RECORD.read(EXCHANGE_RECORD.write(exchange)) == exchange


def test_the_cluster_of_a_realm_is_stored_with_it() -> None:
    live = replace(LIVE, arvados_api="https://api.example.org")
    exchange = ExchangeRecord(REALM, None, AT, live=live)

    assert EXCHANGE_RECORD.read(EXCHANGE_RECORD.write(exchange)) == exchange


def test_messages_are_sent_and_read_as_in_the_golden_file() -> None:
    sqs = RecordingSqs()
    SqsInbox(sqs, PREFIX + "trial-live-inbox.fifo").notify("c1=", Admitted(), request="q-1")
    SqsOutboxes(sqs, PREFIX + "trial-live-outboxes.fifo").put("c1=", list(ITEMS.values()))

    assert sqs.sent == golden("live", "arvados")["messages"]
    signal, *items = (message["MessageBody"] for message in sqs.sent)
    assert parse(signal).received == Admitted()
    assert [parse_item(body) for body in items] == list(ITEMS.values())


def test_the_event_of_a_bad_frame_is_as_in_the_golden_file() -> None:
    event = events.frame_refused(SESSION, events.Cause("f1", AT))

    assert {"kind": event.kind, "outcome": event.outcome, "id": event.event_id, "labels": dict(event.labels)} == (
        golden("live", "arvados")["event"]
    )
    assert events.frame_refused(replace(SESSION, state=SessionState.OPEN), events.Cause("f1", AT)).labels == {}
