"""A table through botocore's client, with the expressions, values and refusals of its adapters."""

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from signalbox.aws.shared.dynamodb import DynamoTable, ItemBusy
from signalbox.aws.shared.expressions import EXISTS, IS_NEW, Delete, Expression, Put, Update, attr
from tests.fakes.backoff import AT_ONCE

KEY = {"pk": "a", "sk": "1"}
ITEM = KEY | {"n": 7, "d": Decimal("1.5"), "b": b"\x00\xff", "t": "text", "is": True, "l": [1, {"m": "x"}], "s": {"x"}}
REFUSED = Update(KEY, sets={"v": "1"}, condition=IS_NEW)


def refusing(code: str) -> DynamoTable:
    """Return a table whose updates fail with a code; moto does not simulate conflicting transactions."""
    return DynamoTable(Mock(update_item=Mock(side_effect=error(code))), "Live", AT_ONCE)


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "UpdateItem")


def test_an_item_comes_back_as_it_was_stored(live_table: DynamoTable) -> None:
    live_table.write(Put(ITEM))

    assert live_table.get(KEY) == ITEM
    assert live_table.get(KEY | {"sk": "2"}) is None


def test_a_value_without_a_type_of_ours_is_refused(live_table: DynamoTable) -> None:
    for value in (1.5, None, object()):
        with pytest.raises(TypeError, match=type(value).__name__):
            live_table.write(Put(KEY | {"value": value}))


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (attr("n").eq(7), True),
        (attr("n").eq(8), False),
        (attr("n").lt(8), True),
        (attr("n").lt(7), False),
        (attr("n").lte(7), True),
        (attr("n").lte(6), False),
        (attr("n").gt(6), True),
        (attr("n").gt(7), False),
        (attr("n").gte(7), True),
        (attr("n").gte(8), False),
        (attr("n").between(7, 8), True),
        (attr("n").between(8, 9), False),
        (attr("t").begins_with("te"), True),
        (attr("t").begins_with("x"), False),
        (attr("t").is_in(["other", "text"]), True),
        (attr("t").is_in(["other"]), False),
        (attr("l").at(0).eq(1), True),
        (attr("l").at(0).eq(2), False),
        (attr("l").size().lt(3), True),
        (attr("l").size().lt(2), False),
        (EXISTS, True),
        (attr("gone").exists(), False),
        (attr("gone").not_exists(), True),
        (IS_NEW, False),
        (attr("n").eq(7) & attr("t").eq("other"), False),
        (attr("n").eq(8) | attr("t").eq("text"), True),
        (attr("n").eq(8) & attr("t").eq("text") | attr("n").eq(7), True),
        (attr("n").eq(8) & (attr("t").eq("text") | attr("n").eq(7)), False),
    ],
)
def test_a_write_happens_only_if_its_condition_holds(
    live_table: DynamoTable, condition: Expression, *, holds: bool
) -> None:
    live_table.write(Put(ITEM))

    assert live_table.write(Delete(KEY, condition)) is holds
    assert (live_table.get(KEY) is None) is holds


def test_an_update_changes_numbers_lists_and_sets_and_removes_attributes(live_table: DynamoTable) -> None:
    live_table.write(Put(ITEM))
    update = Update(
        KEY,
        sets={"n": attr("n") + 1, "l": attr("l").extended(["new"]), "first": attr("first").otherwise("now")},
        adds={"d": 1, "s": {"y"}},
        removes=[attr("b"), attr("is")],
        condition=attr("n").eq(7),
    )

    changed = live_table.written(update)

    assert changed is not None
    assert {name: changed.get(name) for name in ("n", "d", "s", "first", "b", "is")} == {
        "n": 8,
        "d": Decimal("2.5"),
        "s": {"x", "y"},
        "first": "now",
        "b": None,
        "is": None,
    }
    assert changed["l"] == [*ITEM["l"], "new"]
    assert live_table.written(update) is None
    assert live_table.written(Update(KEY, takes={"s": {"y"}}), "UPDATED_NEW") == {"s": {"x"}}


def test_pages_of_a_query_follow_one_another(live_table: DynamoTable) -> None:
    live_table.write_all(Put(KEY | {"sk": str(number), "n": number, "m": 0}) for number in range(3))
    of_a = attr("pk").eq("a")

    assert [[item["sk"] for item in page] for page in live_table.pages(of_a, Limit=2)] == [["0", "1"], ["2"]]
    assert list(live_table.query(of_a, only=["n"], where=attr("n").gt(1))) == [{"n": 2}]


def test_another_refusal_is_an_error(aws: None) -> None:
    nowhere = DynamoTable(boto3.client("dynamodb"), "NoSuchTable")

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        nowhere.write(Put(KEY))
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        nowhere.transact(Put(KEY))


def test_a_write_in_conflict_with_a_transaction_is_retryable() -> None:
    busy = refusing("TransactionConflictException")

    with pytest.raises(ItemBusy, match="a concurrent transaction"):
        busy.write(REFUSED)
    with pytest.raises(ItemBusy, match="concurrent transactions"):
        busy.write_unless_busy(REFUSED)


def test_a_write_in_conflict_with_a_transaction_is_repeated() -> None:
    update = Mock(side_effect=[error("TransactionConflictException"), {}])

    assert DynamoTable(Mock(update_item=update), "Live", AT_ONCE).write_unless_busy(REFUSED)


def test_a_transaction_tells_which_conditions_failed(live_table: DynamoTable) -> None:
    live_table.write(Put(ITEM))

    assert live_table.transact(Put(KEY | {"sk": "2"}, IS_NEW), Delete(KEY, IS_NEW)) == [True, False]
    assert live_table.transact(Put(KEY | {"sk": "2"}, IS_NEW), Delete(KEY, EXISTS)) == [True, True]


def test_a_transaction_in_conflict_with_another_is_retryable(live_table: DynamoTable) -> None:
    with Stubber(live_table.client) as stub:
        stub.add_client_error("transact_write_items", "TransactionConflictException")

        with pytest.raises(ItemBusy, match="the same records of Live"):
            live_table.transact(Delete(KEY))


class HalfAtATime(SimpleNamespace):
    """A client that processes one key or write of each batch."""

    client: Any

    def batch_get_item(self, *, RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
        first, *left = RequestItems["Live"]["Keys"]
        answer = self.client.batch_get_item(RequestItems={"Live": {"Keys": [first]}})
        return answer | {"UnprocessedKeys": {"Live": RequestItems["Live"] | {"Keys": left}} if left else {}}

    def batch_write_item(self, *, RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
        first, *left = RequestItems["Live"]
        answer = self.client.batch_write_item(RequestItems={"Live": [first]})
        return answer | {"UnprocessedItems": {"Live": left} if left else {}}


def test_what_a_batch_leaves_is_repeated_until_the_attempts_end(live_table: DynamoTable) -> None:
    table = replace(live_table, client=HalfAtATime(client=live_table.client), backoff=AT_ONCE)
    items = [KEY | {"sk": f"{number}"} for number in range(9)]

    table.write_all(map(Put, items[:8]))

    assert len(list(table.get_all(items[:8]))) == 8
    with pytest.raises(ItemBusy, match="tables 'Live'"):
        list(table.get_all(items))
    with pytest.raises(ItemBusy, match="did not take 1 writes"):
        table.write_all(map(Delete, items))
