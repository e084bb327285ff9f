"""The router's log: events and numbers in one transaction."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.exchange.routing_table import DynamoHeads
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.router_log import DynamoRouterLog
from signalbox.aws.shared.expressions import attr
from signalbox.exchange.model.records import LiveSettings, Retention
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import HeadChange
from signalbox.exchange.routing.sequences import Head, numbered
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
REALM, TOPIC, OTHER = ExchangeName("xs_trial.fifo"), RoutingKey("trial.a"), RoutingKey("trial.b")
LIVE = LiveSettings()
FIRST = numbered(Head(), [MessageId("m1")])


@pytest.fixture
def log(live_table, exchange_table) -> DynamoRouterLog:
    return DynamoRouterLog(DynamoTopicLog(live_table), DynamoHeads(exchange_table, exchange_table))


def event(number: int, topic: RoutingKey = TOPIC) -> LoggedEvent:
    return LoggedEvent(PublicationId(number), topic, NOW, Payload(("x",)), sequence=number)


def logged(log: DynamoRouterLog, topic: RoutingKey = TOPIC) -> list[int | None]:
    return [one.sequence for one in log.log.events(REALM, topic, live=LIVE, now=NOW)]


def test_events_and_numbers_are_written_together(log: DynamoRouterLog) -> None:
    changes = [HeadChange(TOPIC, FIRST, Head()), HeadChange(OTHER, FIRST, Head())]

    assert log.append_with(REALM, [event(1), event(1, OTHER)], live=LIVE, heads=changes)

    assert (logged(log), logged(log, OTHER)) == ([1], [1])
    assert log.heads.read(REALM, [TOPIC, OTHER]) == {TOPIC: FIRST, OTHER: FIRST}


def test_nothing_is_written_if_a_head_has_changed(log: DynamoRouterLog) -> None:
    log.heads.save(REALM, HeadChange(TOPIC, FIRST, Head()))
    mine = numbered(Head(), [MessageId("m2")])
    changes = [HeadChange(OTHER, FIRST, Head()), HeadChange(TOPIC, mine, Head())]

    assert not log.append_with(REALM, [event(1), event(1, OTHER)], live=LIVE, heads=changes)

    assert (logged(log), logged(log, OTHER)) == ([], [])
    assert log.heads.read(REALM, [TOPIC, OTHER]) == {TOPIC: FIRST}


def test_detours_of_a_head_are_kept(log: DynamoRouterLog) -> None:
    log.append_with(REALM, [event(1)], live=LIVE, heads=[HeadChange(TOPIC, FIRST, Head())])
    log.heads.start_detour(REALM, TOPIC, "q_log.fifo", last=1)
    second = numbered(FIRST, [MessageId("m2")])

    assert log.append_with(REALM, [event(2)], live=LIVE, heads=[HeadChange(TOPIC, second, FIRST)])

    assert log.heads.read(REALM, [TOPIC])[TOPIC].detours == {"q_log.fifo": 1}


def test_events_beyond_the_kept_number_are_deleted_in_the_same_transaction(log: DynamoRouterLog) -> None:
    live = LiveSettings(retention=Retention(count=1, age=None))
    log.append(REALM, [event(1)], live=live)

    log.append_with(REALM, [event(1_002)], live=live, heads=[HeadChange(TOPIC, FIRST, Head())])

    items = log.log.table.query(attr("pk").eq(f"log#{REALM}#{TOPIC}"))
    assert [int(item["sk"]) for item in items] == [1_002]


MANY = [event(number) for number in range(1, 102)]
LARGE = [replace(event(1), payload=Payload((secrets.token_hex(60_000),)))]


@pytest.mark.parametrize("events", [MANY, LARGE])
def test_many_or_large_events_are_written_after_the_heads_without_a_transaction_which_costs_twice(
    log: DynamoRouterLog, events: list[LoggedEvent], monkeypatch
) -> None:
    monkeypatch.delattr(type(log.heads.table.client), "transact_write_items")

    assert log.append_with(REALM, events, live=LIVE, heads=[HeadChange(TOPIC, FIRST, Head())])

    assert (logged(log), log.heads.read(REALM, [TOPIC])) == ([one.sequence for one in events], {TOPIC: FIRST})


def test_no_large_event_is_written_if_a_head_has_changed(log: DynamoRouterLog) -> None:
    log.heads.save(REALM, HeadChange(TOPIC, FIRST, Head()))
    mine = numbered(Head(), [MessageId("m2")])

    assert not log.append_with(REALM, LARGE, live=LIVE, heads=[HeadChange(TOPIC, mine, Head())])

    assert logged(log) == []


@pytest.mark.parametrize(
    ("error", "is_left_to_single_writes"),
    [
        ({"Error": {"Code": "TransactionConflictException"}}, True),
        (
            {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": [{"Code": "ThrottlingError"}]},
            True,
        ),
        ({"Error": {"Code": "AccessDeniedException"}}, False),
    ],
)
def test_a_transaction_that_is_cancelled_is_left_to_single_writes(
    log: DynamoRouterLog,
    monkeypatch,
    error: Any,
    is_left_to_single_writes: bool,  # noqa: FBT001
) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError(error, "TransactWriteItems")

    monkeypatch.setattr(log.heads.table.client, "transact_write_items", refuse)
    change = HeadChange(TOPIC, FIRST, Head())

    if is_left_to_single_writes:
        assert not log.append_with(REALM, [event(1)], live=LIVE, heads=[change])
    else:
        with pytest.raises(ClientError):
            log.append_with(REALM, [event(1)], live=LIVE, heads=[change])
