"""The items of one partition key take 3,000 read units and 1,000 write units in a second."""

import pytest

from signalbox.local.emulator.weather.hot_keys import HotKeys, read_units, write_units
from tests.local.emulator.weather.service import Clock, Service, code

KILOBYTE = "x" * 1020
ITEM = {"pk": {"S": "a"}, "body": {"S": "x" * 400_000}}  # 98 units of a consistent read, 391 of a write


def hot_keys(clock: Clock) -> HotKeys:
    return HotKeys(clock, lambda _table: "pk")


def key(name: str) -> dict[str, object]:
    return {"pk": {"S": name}}


def taken_until_refused(rule: HotKeys, service: Service, action: str, **parameters: object) -> int:
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
        ("Query", {"KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": {"S": "a"}}}, 31),
        ("PutItem", {"Item": ITEM}, 3),
        ("UpdateItem", {"Key": key("a"), "ExpressionAttributeValues": {":v": ITEM["body"]}}, 3),
        ("DeleteItem", {"Key": key("a")}, 1000),
    ],
)
def test_a_key_is_refused_after_its_units_and_taken_in_the_next_second(action, parameters, count):
    clock, service = Clock(), Service({"Item": ITEM, "Items": [ITEM, ITEM]})
    rule = hot_keys(clock)

    assert taken_until_refused(rule, service, action, **parameters) == count
    clock.now += 1
    assert service.answer(rule, "dynamodb", action, TableName="t", **parameters).is_success


def test_other_items_tables_and_services_are_not_refused():
    clock, service = Clock(), Service({"Item": ITEM})
    rule = hot_keys(clock)
    taken_until_refused(rule, service, "GetItem", Key=key("a"), ConsistentRead=True)

    assert service.answer(rule, "dynamodb", "GetItem", TableName="t", Key=key("b")).is_success
    assert service.answer(rule, "dynamodb", "GetItem", TableName="u", Key=key("a")).is_success
    assert service.answer(rule, "dynamodb", "PutItem", TableName="t", Item=key("a")).is_success
    assert service.answer(rule, "dynamodb", "Query", TableName="t").is_success
    assert service.answer(rule, "dynamodb", "Scan", TableName="t").is_success
    assert service.answer(rule, "sqs", "GetItem").is_success


def test_the_items_of_a_key_share_its_units():
    service = Service({"Item": ITEM})
    rule = HotKeys(Clock(), lambda _table: "pk")
    one, other = ({"pk": {"S": "a"}, "sk": {"S": name}} for name in ("1", "2"))
    taken_until_refused(rule, service, "GetItem", Key=one, ConsistentRead=True)
    taken_until_refused(rule, service, "DeleteItem", Key=one)

    def status_of(action: str, key: object) -> int:
        return service.answer(rule, "dynamodb", action, TableName="t", Key=key).status

    assert [status_of(action, other) for action in ("GetItem", "DeleteItem")] == [400, 400]
    assert status_of("GetItem", {**one, "pk": {"S": "b"}}) == 200


@pytest.mark.parametrize(
    ("condition", "names", "status"),
    [
        ("pk = :a", {}, 400),
        ("#p = :a AND begins_with(sk, :b)", {"#p": "pk"}, 400),
        ("sk = :b AND pk=:a", {}, 400),
        ("pk = :b AND sk = :a", {}, 200),
    ],
)
def test_a_query_takes_of_the_partition_key_in_its_condition(condition, names, status):
    service = Service({"Item": ITEM})
    rule = hot_keys(Clock())
    taken_until_refused(rule, service, "GetItem", Key=key("a"), ConsistentRead=True)

    answer = service.answer(
        rule,
        "dynamodb",
        "Query",
        TableName="t",
        KeyConditionExpression=condition,
        ExpressionAttributeNames=names,
        ExpressionAttributeValues={":a": {"S": "a"}, ":b": {"S": "b"}},
    )

    assert answer.status == status


def test_an_index_has_partition_keys_of_its_own():
    service = Service({"Items": [ITEM] * 31})
    rule = hot_keys(Clock())
    asked = {
        "TableName": "t",
        "KeyConditionExpression": "pool = :a AND available_at < :now",
        "ExpressionAttributeValues": {":a": {"S": "a"}, ":now": {"N": "1"}},
    }
    statuses = [service.answer(rule, "dynamodb", "Query", **asked, IndexName="i").status for _ in range(3)]

    assert statuses == [200, 200, 400]
    assert service.answer(rule, "dynamodb", "Query", **asked, IndexName="other").is_success
    assert service.answer(rule, "dynamodb", "GetItem", TableName="t", Key=key("a")).is_success


def test_a_read_that_fails_takes_nothing():
    service = Service(status=400)
    rule = hot_keys(Clock())
    for _ in range(100):
        service.answer(rule, "dynamodb", "GetItem", TableName="t", Key=key("a"), ConsistentRead=True)
    service.status = 200

    assert service.answer(rule, "dynamodb", "GetItem", TableName="t", Key=key("a")).is_success


def test_a_transaction_takes_twice_the_units_of_each_of_its_items():
    service = Service()
    rule = hot_keys(Clock())
    transaction = [{"Put": {"TableName": "t", "Item": ITEM}}, {"Update": {"TableName": "t", "Key": key("b")}}]

    statuses = [
        service.answer(rule, "dynamodb", "TransactWriteItems", TransactItems=transaction).status for _ in range(3)
    ]

    assert statuses == [200, 200, 400]


def test_keys_of_hot_items_are_left_unread():
    service = Service({"Responses": {"t": [ITEM]}})
    rule = hot_keys(Clock())
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

    answer = service.answer(hot_keys(Clock()), "dynamodb", "BatchGetItem", RequestItems={"t": {"Keys": [key("a")]}})

    assert answer.status == 400


def test_writes_of_hot_items_are_left_unprocessed():
    service = Service()
    rule = hot_keys(Clock())
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
