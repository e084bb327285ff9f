"""Responses of DynamoDB to conditional writes."""

from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from signalbox.aws.shared.dynamodb import ItemBusy, deleted, succeeds, transacted, unless_busy, updated
from signalbox.backoff import Backoff
from tests.fakes.aws import aws, exchange_table  # noqa: F401 - fixtures
from tests.fakes.backoff import SteppedClock

AT_ONCE = Backoff(SteppedClock(), lambda: 0.0)
KEY = {"pk": "a", "sk": "b"}
NEW = {"Key": KEY, "UpdateExpression": "SET v = :v", "ConditionExpression": "attribute_not_exists(pk)"}


def refusing(code: str) -> Mock:
    """Return a write, or a table, that fails with a code; moto does not simulate conflicting transactions."""
    error = ClientError({"Error": {"Code": code, "Message": "no"}}, "UpdateItem")
    return Mock(side_effect=error, update_item=Mock(side_effect=error))


def test_a_condition_holds_or_does_not(exchange_table):  # noqa: F811 - a fixture
    def put() -> object:
        return exchange_table.put_item(Item=KEY, ConditionExpression="attribute_not_exists(pk)")

    assert [succeeds(put), succeeds(put)] == [True, False]


def test_an_update_returns_the_new_item_or_none(exchange_table):  # noqa: F811 - a fixture
    arguments = {**NEW, "ExpressionAttributeValues": {":v": "1"}}

    assert [updated(exchange_table, arguments), updated(exchange_table, arguments)] == [{**KEY, "v": "1"}, None]


def test_a_deletion_returns_the_deleted_item_or_none(exchange_table):  # noqa: F811 - a fixture
    exchange_table.put_item(Item={**KEY, "v": "1"})
    arguments = {"Key": KEY, "ConditionExpression": "attribute_exists(pk)"}

    assert [deleted(exchange_table, arguments), deleted(exchange_table, arguments)] == [{**KEY, "v": "1"}, None]


def test_a_write_in_conflict_with_a_transaction_is_retryable():
    busy = refusing("TransactionConflictException")

    with pytest.raises(ItemBusy, match="a concurrent transaction"):
        succeeds(busy)
    with pytest.raises(ItemBusy, match="a concurrent transaction"):
        updated(busy, NEW)


def test_another_refusal_is_an_error(aws):  # noqa: F811 - a fixture
    nowhere = boto3.resource("dynamodb").Table("NoSuchTable")

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        succeeds(lambda: nowhere.put_item(Item=KEY))
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        updated(nowhere, {"Key": KEY})


def test_a_transaction_in_conflict_with_another_is_retryable(exchange_table):  # noqa: F811 - a fixture
    with Stubber(exchange_table.meta.client) as stub:
        stub.add_client_error("transact_write_items", "TransactionConflictException")

        with pytest.raises(ItemBusy, match="the same records of Exchanges"):
            transacted(exchange_table, [{"Delete": {"TableName": "Exchanges", "Key": KEY}}])


def test_a_write_in_conflict_with_a_transaction_is_repeated():
    busy = ClientError({"Error": {"Code": "TransactionConflictException", "Message": "no"}}, "UpdateItem")

    assert unless_busy(Mock(side_effect=[busy, {}]), AT_ONCE)
    with pytest.raises(ItemBusy, match="concurrent transactions"):
        unless_busy(refusing("TransactionConflictException"), AT_ONCE)
