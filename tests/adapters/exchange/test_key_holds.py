"""The store of key holds: memory and DynamoDB behave alike."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from botocore.stub import Stubber

from signalbox.aws.exchange.key_holds import DynamoKeyHolds
from signalbox.aws.exchange.routing_table import DynamoHeads, head_update
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.key_holds import EndingHold, KeyHolds
from signalbox.exchange.routing.ports import HeadChange, NewHold
from signalbox.exchange.routing.sequences import Head, numbered
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import STORES
from tests.unit.exchange.routing.routing_world import MemoryKeyHolds

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
LATER = NOW + timedelta(seconds=40)
LOG, KEY, OTHER = ExchangeName("xlog.fifo"), RoutingKey("a.b"), RoutingKey("a.c")


@pytest.fixture(params=STORES)
def holds(request) -> KeyHolds:
    return MemoryKeyHolds() if request.param == "memory" else DynamoKeyHolds(request.getfixturevalue("exchange_table"))


def held(holds: KeyHolds, key: RoutingKey = KEY, *, by: str, now: datetime = NOW) -> list[str] | None:
    """Hold a key for messages with one-letter ids."""
    messages = list(map(MessageId, by))
    found = holds.hold(LOG, key, messages=messages, now=now, until=now + timedelta(seconds=40))
    return None if found is None else list(dict.fromkeys(found))


def release(holds: KeyHolds, *, held_for: str, left: str = "") -> None:
    holds.release(LOG, [EndingHold(KEY, list(map(MessageId, held_for)), list(map(MessageId, left)))])


def test_a_key_is_held_for_some_and_no_others(holds) -> None:
    assert held(holds, by="ab") == ["a", "b"]
    assert held(holds, by="c") is None
    assert held(holds, OTHER, by="c") == ["c"]


def test_a_batch_with_the_first_message_of_a_hold_shares_it(holds) -> None:
    assert held(holds, by="ab") == ["a", "b"]
    assert held(holds, by="b") is None
    assert held(holds, by="ca") == ["a", "b", "c"]


def test_a_key_that_was_let_go_of_is_free(holds) -> None:
    assert held(holds, by="a")
    release(holds, held_for="a")
    assert held(holds, by="b") == ["b"]


def test_a_key_stays_held_for_those_that_are_left(holds) -> None:
    assert held(holds, by="abc")
    release(holds, held_for="abc", left="bc")
    assert held(holds, by="a") is None
    assert held(holds, by="b") == ["b", "c"]


def test_a_key_is_free_when_its_time_is_over(holds) -> None:
    assert held(holds, by="a")
    assert held(holds, by="a", now=LATER - timedelta(milliseconds=1)) == ["a"]
    assert held(holds, by="b", now=LATER - timedelta(milliseconds=1)) is None
    assert held(holds, by="b", now=LATER) == ["b"]


def test_a_changed_hold_is_not_released(holds) -> None:
    assert held(holds, by="a")
    release(holds, held_for="b")
    assert held(holds, by="b") is None


def test_a_head_counts_as_before_while_it_is_held(exchange_table) -> None:
    holds, heads = DynamoKeyHolds(exchange_table), DynamoHeads(exchange_table, exchange_table)
    assert held(holds, by="a")
    counted = numbered(Head(), [MessageId("m1")])

    assert heads.save(LOG, HeadChange(KEY, counted, Head()))
    assert heads.read(LOG, [KEY]) == {KEY: counted}
    assert held(holds, by="b") is None


def test_all_keys_of_a_batch_are_let_go_of_in_one_call(exchange_table) -> None:
    holds, calls = DynamoKeyHolds(exchange_table), Counter[str]()
    assert held(holds, by="a")
    assert held(holds, OTHER, by="a")
    exchange_table.client.meta.events.register("before-call", lambda model, **_: calls.update([model.name]))

    holds.release(LOG, ending(KEY, OTHER))

    assert calls == {"TransactWriteItems": 1}
    assert (held(holds, by="b"), held(holds, OTHER, by="b")) == (["b"], ["b"])


def test_a_changed_hold_does_not_keep_others_held(holds) -> None:
    assert held(holds, by="x")
    assert held(holds, OTHER, by="a")

    holds.release(LOG, ending(KEY, OTHER))

    assert held(holds, by="b") is None
    assert held(holds, OTHER, by="b") == ["b"]


def test_keys_on_which_a_transaction_works_are_let_go_of_one_after_the_other(exchange_table) -> None:
    with Stubber(exchange_table.client) as stub:
        stub.add_client_error("transact_write_items", "TransactionConflictException")
        for _ in range(2):
            stub.add_response("update_item", {})
        DynamoKeyHolds(exchange_table).release(LOG, ending(KEY, OTHER))
        stub.assert_no_pending_responses()


def test_a_key_on_which_a_transaction_works_is_not_held(exchange_table) -> None:
    with Stubber(exchange_table.client) as stub:
        for _ in range(2):
            stub.add_client_error("update_item", "TransactionConflictException")
        assert held(DynamoKeyHolds(exchange_table), by="a") is None


def test_a_head_is_stored_with_its_hold_only_if_nobody_holds_its_key(exchange_table) -> None:
    holds = DynamoKeyHolds(exchange_table)
    hold = NewHold([MessageId("a")], [], NOW, LATER)
    first = numbered(Head(), [MessageId("a")])
    changes = [
        head_update(LOG, HeadChange(KEY, first, Head(), hold)),
        head_update(LOG, HeadChange(KEY, numbered(first, [MessageId("b")]), first, hold)),
    ]

    def is_stored(number: int) -> bool:
        return exchange_table.write(changes[number])

    assert is_stored(0)
    assert held(holds, by="b") is None
    assert not is_stored(1)
    holds.release(LOG, ending(KEY))
    assert is_stored(1)


def test_a_head_is_stored_with_the_hold_that_replaces_its_routers_own(exchange_table) -> None:
    holds, heads = DynamoKeyHolds(exchange_table), DynamoHeads(exchange_table, exchange_table)
    assert held(holds, by="ab")
    a, b = map(MessageId, "ab")
    first = numbered(Head(), [b])

    assert not heads.save(LOG, HeadChange(KEY, first, Head(), NewHold([b], [a], NOW, LATER + timedelta(days=1))))
    assert heads.save(LOG, HeadChange(KEY, first, Head(), NewHold([b], [a, b], NOW, LATER + timedelta(days=1))))

    assert held(holds, by="a", now=LATER) is None
    assert held(holds, by="b", now=LATER) == ["b"]


def ending(*keys: RoutingKey) -> list[EndingHold]:
    return [EndingHold(key, [MessageId("a")], []) for key in keys]
