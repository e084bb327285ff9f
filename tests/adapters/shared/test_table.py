"""A table through botocore's client, with the conditions and values of its adapters."""

from decimal import Decimal

import boto3
import pytest

from signalbox.aws.shared.conditions import Attr, Key
from signalbox.aws.shared.dynamodb import succeeds
from signalbox.aws.shared.table import DynamoTable

KEY = {"pk": "a", "sk": "1"}
ITEM = KEY | {"n": 7, "d": Decimal("1.5"), "b": b"\x00\xff", "t": "text"}


@pytest.fixture
def table(live_table) -> DynamoTable:
    return DynamoTable(boto3.client("dynamodb"), live_table.name)


def test_an_item_comes_back_as_it_was_stored(table: DynamoTable) -> None:
    table.put_item(Item=ITEM)

    assert table.get_item(Key=KEY)["Item"] == ITEM
    assert "Item" not in table.get_item(Key=KEY | {"sk": "2"})


@pytest.mark.parametrize("value", [1.5, None, True, ["a"]])
def test_a_value_without_a_type_of_ours_is_refused(table: DynamoTable, value: object) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        table.put_item(Item=KEY | {"value": value})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Attr("n").eq(7), True),
        (Attr("n").eq(8), False),
        (Attr("n").lte(7), True),
        (Attr("n").lte(6), False),
        (Attr("n").gt(6), True),
        (Attr("n").gt(7), False),
        (Attr("n").between(7, 8), True),
        (Attr("n").between(8, 9), False),
        (Attr("t").is_in(["other", "text"]), True),
        (Attr("t").is_in(["other"]), False),
        (Attr("gone").not_exists(), True),
        (Attr("t").not_exists(), False),
        (Attr("n").eq(7) & Attr("t").eq("other"), False),
        (Attr("n").eq(8) | Attr("t").eq("text"), True),
        (Attr("n").eq(8) & Attr("t").eq("text") | Attr("n").eq(7), True),
        (Attr("n").eq(8) & (Attr("t").eq("text") | Attr("n").eq(7)), False),
    ],
)
def test_a_write_happens_only_if_its_condition_holds(table: DynamoTable, condition: object, *, holds: bool) -> None:
    table.put_item(Item=ITEM)

    assert succeeds(lambda: table.delete_item(Key=KEY, ConditionExpression=condition)) is holds
    assert ("Item" in table.get_item(Key=KEY)) is not holds


def test_an_update_has_names_and_values_of_its_own_beside_those_of_its_condition(table: DynamoTable) -> None:
    table.put_item(Item=ITEM)

    changed = table.update_item(
        Key=KEY,
        UpdateExpression="SET #t = :t",
        ConditionExpression=Attr("t").eq("text"),
        ExpressionAttributeNames={"#t": "t"},
        ExpressionAttributeValues={":t": "new"},
        ReturnValues="ALL_NEW",
    )

    assert changed["Attributes"] == ITEM | {"t": "new"}


def test_pages_of_a_query_follow_one_another(table: DynamoTable) -> None:
    for number in range(3):
        table.put_item(Item=KEY | {"sk": str(number)})
    of_a = Key("pk").eq("a")

    first = table.query(KeyConditionExpression=of_a, Limit=2)
    second = table.query(KeyConditionExpression=of_a, Limit=2, ExclusiveStartKey=first["LastEvaluatedKey"])

    assert [item["sk"] for page in (first, second) for item in page["Items"]] == ["0", "1", "2"]
    assert "LastEvaluatedKey" not in second
    assert table.query(KeyConditionExpression=of_a, Select="COUNT")["Count"] == 3
