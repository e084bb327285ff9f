"""DynamoDB: conversion of values, conditional writes, transactions and paged reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from botocore.exceptions import ClientError

from signalbox.aws.shared.backoff import BACKOFF
from signalbox.backoff import Backoff
from signalbox.errors import Contended

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from signalbox.aws.shared.table import DynamoTable

TRANSACTION_CONFLICT = "TransactionConflictException"
MAXIMUM_KEYS = 100  # of BatchGetItem
MAXIMUM_WRITES = 25  # of BatchWriteItem

Answer = TypeVar("Answer")
Item = dict[str, Any]  # values of boto3's table resource: str, Decimal, bool, bytes, dict, list


class ItemBusy(Contended):
    """Raised when a concurrent transaction on the same items makes DynamoDB reject a write."""


def milliseconds(moment: datetime) -> int:
    """Return a time as epoch milliseconds, the unit of every time in our tables except the TTL."""
    return round(moment.timestamp() * 1000)


def moment(number: Decimal) -> datetime:
    """Return the time of epoch milliseconds."""
    return datetime.fromtimestamp(int(number) / 1000, UTC)


def succeeds(write: Callable[[], object]) -> bool:
    """Execute a conditional write and return whether its condition held. Raises `ItemBusy`."""
    return not isinstance(_attempt(write), ClientError)


def unless_busy(write: Callable[[], object], backoff: Backoff = BACKOFF) -> bool:
    """Execute a conditional write as `succeeds` does, again while transactions write to its item. Raises `ItemBusy`."""
    for _ in backoff.attempts():
        with suppress(ItemBusy):
            return succeeds(write)
    raise ItemBusy("concurrent transactions write to the same record")


def updated(
    table: "Table | DynamoTable", arguments: Mapping[str, Any], *, returned: Literal["ALL_NEW", "ALL_OLD"] = "ALL_NEW"
) -> Item | None:
    """Execute a conditional update and return the new or old item, or None when its condition failed.

    Raises `ItemBusy`.
    """
    answer = _attempt(lambda: table.update_item(**arguments, ReturnValues=returned))
    return None if isinstance(answer, ClientError) else answer["Attributes"]


def deleted(table: "Table | DynamoTable", arguments: Mapping[str, Any]) -> Item | None:
    """Execute a conditional deletion and return the old item, or None when its condition failed.

    Raises `ItemBusy`.
    """
    answer = _attempt(lambda: table.delete_item(**arguments, ReturnValues="ALL_OLD"))
    return None if isinstance(answer, ClientError) else answer.get("Attributes")


def _attempt(write: Callable[[], Answer]) -> Answer | ClientError:
    """Return the response of a conditional write, or the error of its failed condition."""
    try:
        return write()
    except ClientError as error:
        if _code(error) == TRANSACTION_CONFLICT:
            raise ItemBusy("a concurrent transaction writes to the same record") from error
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
    """Execute all writes or none; return, in their order, whether the condition of each held.

    Raises `ItemBusy`.
    """
    try:
        table.meta.client.transact_write_items(TransactItems=writes)
    except ClientError as error:
        codes = reasons(error)
        if "TransactionConflict" in codes or _code(error) == TRANSACTION_CONFLICT:
            raise ItemBusy(f"a concurrent transaction writes to the same records of {table.name}") from error
        if "ConditionalCheckFailed" not in codes:
            raise
        return [code != "ConditionalCheckFailed" for code in codes]
    return [True] * len(writes)


def reasons(error: ClientError) -> Sequence[str]:
    """Return the cancellation codes of a transaction's writes, in their order; empty for any other error."""
    # The stubs type CancellationReasons for one operation only.
    found = cast("list[dict[str, str]]", error.response.get("CancellationReasons", []))
    return [reason.get("Code", "") for reason in found]


def items_of_tables(
    client: "DynamoDBClient",
    keys: Mapping[str, Sequence[Item]],
    *,
    is_consistent: bool = True,
    backoff: Backoff = BACKOFF,
) -> dict[str, list[Item]]:
    """Return the existing items by table name, in one BatchGetItem of at most 100 keys.

    Keys that DynamoDB leaves unprocessed, as it does with an item beyond its 3,000 reads a second, are read again after
    a pause. Raises `ItemBusy`.
    """
    found: dict[str, list[Item]] = {name: [] for name in keys}
    left: Mapping[str, Any] = {
        name: {"Keys": wanted, "ConsistentRead": is_consistent} for name, wanted in keys.items() if wanted
    }
    for _ in backoff.attempts():
        answer = client.batch_get_item(RequestItems=left)
        for name, items in answer["Responses"].items():
            found[name] += items
        left = answer["UnprocessedKeys"]
        if not left:
            return found
    raise ItemBusy(f"tables {', '.join(map(repr, left))} returned no result for some of the keys")


def every_key(
    table: "Table", keys: Sequence[Item], *, is_consistent: bool = True, backoff: Backoff = BACKOFF
) -> Iterator[Item]:
    """Yield the existing items of keys, in any order. Raises `ItemBusy`."""
    for start in range(0, len(keys), MAXIMUM_KEYS):
        wanted = {table.name: keys[start : start + MAXIMUM_KEYS]}
        yield from items_of_tables(table.meta.client, wanted, is_consistent=is_consistent, backoff=backoff)[table.name]


def write_batch(table: "Table", requests: Sequence[Mapping[str, Any]], *, backoff: Backoff = BACKOFF) -> None:
    """Execute up to 25 put and delete requests of BatchWriteItem, none of them for the same item.

    Writes that DynamoDB leaves unprocessed are repeated after a pause. Raises `ItemBusy`; some may then be done.
    """
    left: Any = requests
    for _ in backoff.attempts():
        # The client is thread-safe; the `Table` resource is not.
        left = table.meta.client.batch_write_item(RequestItems={table.name: left})["UnprocessedItems"].get(table.name)
        if not left:
            return
    raise ItemBusy(f"table {table.name!r} did not take {len(left)} writes")


def delete_all(table: "Table", keys: Iterable[Item], *, backoff: Backoff = BACKOFF) -> None:
    """Delete the items of different keys, 25 in a call. Raises `ItemBusy`."""
    _write_all(table, ({"DeleteRequest": {"Key": key}} for key in keys), backoff=backoff)


def put_all(table: "Table", items: Iterable[Item], *, backoff: Backoff = BACKOFF) -> None:
    """Store items of different keys, replacing older ones, 25 in a call. Raises `ItemBusy`; some may then be stored."""
    _write_all(table, ({"PutRequest": {"Item": item}} for item in items), backoff=backoff)


def _write_all(table: "Table", requests: Iterator[Mapping[str, Any]], *, backoff: Backoff) -> None:
    while batch := list(islice(requests, MAXIMUM_WRITES)):
        write_batch(table, batch, backoff=backoff)
