"""One item takes 3,000 read units and 1,000 write units in a second."""

import pytest

from signalbox.local.emulator.weather.hot_items import HotItems, read_units, write_units
from tests.local.emulator.weather.service import Clock, Service, code

KILOBYTE = "x" * 1020
ITEM = {"pk": {"S": "a"}, "body": {"S": "x" * 400_000}}  # 98 units of a consistent read, 391 of a write


def hot_items(clock: Clock) -> HotItems:
    return HotItems(clock, lambda _table: ["pk"])


def key(name: str) -> dict[str, object]:
    return {"pk": {"S": name}}


def taken_until_refused(rule: HotItems, service: Service, action: str, **parameters: object) -> int:
    """Return how many calls succeed before the first refusal within a second."""
    for count in range(5000):
        answer = service.answer(rule, "dynamodb", action, TableName="t", **parameters)
        if not answer.is_success:
            assert code(answer) == "ThrottlingException"
            return count
    raise AssertionError("never refused")


@pytest.mark.parametrize(
    ("action", "parameters", "count"),
    [
        ("GetItem", {"Key": key("a"), "ConsistentRead": True}, 31),
        ("GetItem", {"Key": key("a")}, 62),
        ("PutItem", {"Item": ITEM}, 3),
        ("UpdateItem", {"Key": key("a"), "ExpressionAttributeValues": {":v": ITEM["body"]}}, 3),
        ("DeleteItem", {"Key": key("a")}, 1000),
    ],
)
def test_an_item_is_refused_after_its_units_and_taken_in_the_next_second(action, parameters, count):
    clock, service = Clock(), Service({"Item": ITEM})
    rule = hot_items(clock)

    assert taken_until_refused(rule, service, action, **parameters) == count
    clock.now += 1
    assert service.answer(rule, "dynamodb", action, TableName="t", **parameters).is_success


def test_other_items_tables_and_services_are_not_refused():
    clock, service = Clock(), Service({"Item": ITEM})
    rule = hot_items(clock)
    taken_until_refused(rule, service, "GetItem", Key=key("a"), ConsistentRead=True)

    assert service.answer(rule, "dynamodb", "GetItem", TableName="t", Key=key("b")).is_success
    assert service.answer(rule, "dynamodb", "GetItem", TableName="u", Key=key("a")).is_success
    assert service.answer(rule, "dynamodb", "PutItem", TableName="t", Item=key("a")).is_success
    assert service.answer(rule, "dynamodb", "Query", TableName="t").is_success
    assert service.answer(rule, "sqs", "GetItem").is_success


def test_a_read_that_fails_takes_nothing():
    service = Service(status=400)
    rule = hot_items(Clock())
    for _ in range(100):
        service.answer(rule, "dynamodb", "GetItem", TableName="t", Key=key("a"), ConsistentRead=True)
    service.status = 200

    assert service.answer(rule, "dynamodb", "GetItem", TableName="t", Key=key("a")).is_success


def test_a_transaction_takes_twice_the_units_of_each_of_its_items():
    service = Service()
    rule = hot_items(Clock())
    transaction = [{"Put": {"TableName": "t", "Item": ITEM}}, {"Update": {"TableName": "t", "Key": key("b")}}]

    statuses = [
        service.answer(rule, "dynamodb", "TransactWriteItems", TransactItems=transaction).status for _ in range(3)
    ]

    assert statuses == [200, 200, 400]


def test_keys_of_hot_items_are_left_unread():
    service = Service({"Responses": {"t": [ITEM]}})
    rule = hot_items(Clock())
    one = {"t": {"Keys": [key("a")], "ConsistentRead": True}}
    both = {"t": {"Keys": [key("a"), key("b")], "ConsistentRead": True}}
    for _ in range(31):
        service.answer(rule, "dynamodb", "BatchGetItem", RequestItems=one)

    document = service.answer(rule, "dynamodb", "BatchGetItem", RequestItems=both).document()

    assert document["UnprocessedKeys"] == one
    assert service.calls[-1].parameters["RequestItems"] == {"t": {"Keys": [key("b")], "ConsistentRead": True}}
    assert code(service.answer(rule, "dynamodb", "BatchGetItem", RequestItems=one)) == "ThrottlingException"


def test_a_batch_of_reads_that_fails_takes_nothing():
    service = Service(status=400)

    answer = service.answer(hot_items(Clock()), "dynamodb", "BatchGetItem", RequestItems={"t": {"Keys": [key("a")]}})

    assert answer.status == 400


def test_writes_of_hot_items_are_left_unprocessed():
    service = Service()
    rule = hot_items(Clock())
    put, delete = {"PutRequest": {"Item": ITEM}}, {"DeleteRequest": {"Key": key("b")}}
    for _ in range(3):
        service.answer(rule, "dynamodb", "BatchWriteItem", RequestItems={"t": [put]})

    document = service.answer(rule, "dynamodb", "BatchWriteItem", RequestItems={"t": [put, delete]}).document()

    assert document["UnprocessedItems"] == {"t": [put]}
    assert service.calls[-1].parameters["RequestItems"] == {"t": [delete]}
    refused = service.answer(rule, "dynamodb", "BatchWriteItem", RequestItems={"t": [put]})
    assert code(refused) == "ThrottlingException"


@pytest.mark.parametrize(
    ("item", "units"),
    [
        (None, 1),
        ({"pk": {"S": "a"}}, 1),
        ({"b": {"S": "x" * 4096}}, 2),
        ({"b": {"L": [{"N": "1"}, {"BOOL": True}]}}, 1),
    ],
)
def test_reads_are_counted_in_blocks_of_four_kilobytes(item, units):
    assert read_units(item, is_consistent=True) == units
    assert read_units(item, is_consistent=False) == units / 2


def test_writes_are_counted_in_blocks_of_one_kilobyte():
    assert write_units({"Item": {"b": {"S": KILOBYTE * 2}}}) == 2
    assert write_units({"Key": key("a")}) == 1
