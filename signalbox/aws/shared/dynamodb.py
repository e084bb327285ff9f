"""DynamoDB: items to values and back, and conditional writes that answer yes or no."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.exceptions import ClientError

from signalbox.errors import Contended

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

TRANSACTION_CONFLICT = "TransactionConflictException"
TRIES = 5  # DynamoDB may answer for some of the keys only

Answer = TypeVar("Answer")
Item = dict[str, Any]  # what boto3's table resource gives: str, Decimal, bool, bytes, dict, list


class ItemBusy(Contended):
    """Raised when two write to the same records at the same moment, and DynamoDB lets neither wait."""


def milliseconds(moment: datetime) -> int:
    """Return a moment as epoch milliseconds, the unit of every time in our tables but the TTL."""
    return round(moment.timestamp() * 1000)


def moment(number: Decimal) -> datetime:
    """Return the moment of an epoch in milliseconds."""
    return datetime.fromtimestamp(int(number) / 1000, UTC)


def succeeds(write: Callable[[], object]) -> bool:
    """Carry out a conditional write and say whether its condition held. Raises `ItemBusy`."""
    return not isinstance(_attempt(write), ClientError)


def updated(table: "Table", arguments: Mapping[str, Any]) -> Item | None:
    """Carry out a conditional update and return the new item, or None when its condition did not hold.

    Raises `ItemBusy`.
    """
    answer = _attempt(lambda: table.update_item(**arguments, ReturnValues="ALL_NEW"))
    return None if isinstance(answer, ClientError) else answer["Attributes"]


def updated_or_there(table: "Table", arguments: Mapping[str, Any]) -> tuple[Item | None, bool]:
    """Carry out a conditional update; return what `updated` does, and whether there was an item in that moment.

    Raises `ItemBusy`.
    """
    answer = _attempt(
        lambda: table.update_item(**arguments, ReturnValues="ALL_NEW", ReturnValuesOnConditionCheckFailure="ALL_OLD")
    )
    return (None, "Item" in answer.response) if isinstance(answer, ClientError) else (answer["Attributes"], True)


def deleted(table: "Table", arguments: Mapping[str, Any]) -> Item | None:
    """Carry out a conditional deletion and return the item as it was, or None when its condition did not hold.

    Raises `ItemBusy`.
    """
    answer = _attempt(lambda: table.delete_item(**arguments, ReturnValues="ALL_OLD"))
    return None if isinstance(answer, ClientError) else answer.get("Attributes")


def _attempt(write: Callable[[], Answer]) -> Answer | ClientError:
    """Carry out a conditional write; return its answer, or DynamoDB's refusal when the condition did not hold."""
    try:
        return write()
    except ClientError as error:
        if _code(error) == TRANSACTION_CONFLICT:
            raise ItemBusy("a transaction of somebody else writes to the same record at this moment") from error
        if _code(error) != "ConditionalCheckFailedException":
            raise
        return error


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]


def every_item(query: Callable[..., Mapping[str, Any]], arguments: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the items of all pages of a query or scan."""
    start: Mapping[str, Any] | None = None
    while True:
        page = query(**arguments, **({"ExclusiveStartKey": start} if start else {}))
        yield from page["Items"]
        start = page.get("LastEvaluatedKey")
        if not start:
            return


def transacted(table: "Table", writes: "Sequence[TransactWriteItemTypeDef]") -> Sequence[bool]:
    """Carry out all writes or none; return of which the conditions held, in their order.

    Raises `ItemBusy`.
    """
    try:
        table.meta.client.transact_write_items(TransactItems=writes)
    except ClientError as error:
        codes = reasons(error)
        if "TransactionConflict" in codes or _code(error) == TRANSACTION_CONFLICT:
            raise ItemBusy(f"somebody else writes to the same records of {table.name} at this moment") from error
        if "ConditionalCheckFailed" not in codes:
            raise
        return [code != "ConditionalCheckFailed" for code in codes]
    return [True] * len(writes)


def reasons(error: ClientError) -> Sequence[str]:
    """Return the codes of a cancelled transaction's writes, in their order; empty for another error."""
    # Typed for one call only.
    found = cast("list[dict[str, str]]", error.response.get("CancellationReasons", []))
    return [reason.get("Code", "") for reason in found]


def items_of_tables(client: "DynamoDBClient", keys: Mapping[str, Sequence[Item]]) -> dict[str, list[Item]]:
    """Return, in one consistent read, those of the items that are there, by their tables' names; 100 keys at most.

    Raises `ItemBusy`.
    """
    found: dict[str, list[Item]] = {name: [] for name in keys}
    left: Mapping[str, Any] = {
        name: {"Keys": wanted, "ConsistentRead": True} for name, wanted in keys.items() if wanted
    }
    for _ in range(TRIES):
        answer = client.batch_get_item(RequestItems=left)
        for name, items in answer["Responses"].items():
            found[name] += items
        left = answer["UnprocessedKeys"]
        if not left:
            return found
    raise ItemBusy(f"tables {', '.join(map(repr, left))} did not answer for all keys")
