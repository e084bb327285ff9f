"""The tables of DynamoDB, through botocore's client: boto3's `Table` takes longer to import and in each call."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, cast

from botocore.exceptions import ClientError

from signalbox.aws.shared.expressions import Delete, Expression, Item, Placeholders, Put, Update, Write, attr
from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff
from signalbox.errors import Contended

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

CONDITION_FAILED, TRANSACTION_CONFLICT = "ConditionalCheckFailed", "TransactionConflict"
# Reasons for which a transaction is cancelled, and is not when it is repeated later.
BUSY = frozenset({TRANSACTION_CONFLICT, "ThrottlingError", "ProvisionedThroughputExceeded"})
BY_KIND_INDEX = "by_kind"  # of the tables `Splits` and `Exchanges`
EXCEPTION = "Exception"  # ends the code of a single write's error, and not the reason of a transaction's
MAXIMUM_KEYS = 100  # of BatchGetItem
MAXIMUM_WRITES = 25  # of BatchWriteItem
MAXIMUM_TRANSACTION = 100  # of TransactWriteItems
SMALL_TRANSACTION = 24  # units


class ItemBusy(Contended):
    """Raised when a concurrent transaction on the same items makes DynamoDB reject a write."""


def milliseconds(moment: datetime) -> int:
    """Return a time as epoch milliseconds, the unit of every time in our tables except the TTL."""
    return round(moment.timestamp() * 1000)


def moment(number: Decimal | str) -> datetime:
    """Return the time of epoch milliseconds."""
    return datetime.fromtimestamp(int(number) / 1000, UTC)


def ttl(moment: datetime) -> Item:
    """Return the attribute by which DynamoDB deletes an item after a time."""
    return {"expires_at": round(moment.timestamp())}


@dataclass(frozen=True, slots=True)
class DynamoTable:
    """A table of DynamoDB. Threads may share it.

    Calls that DynamoDB answers in part, as it does with an item beyond its 3,000 reads or 1,000 writes a second, are
    repeated after a pause of `backoff`.
    """

    client: "DynamoDBClient"
    name: str
    backoff: Backoff = BACKOFF

    def get(self, key: Item, *, is_consistent: bool = True) -> Item | None:
        """Return an item, or None."""
        found = self.client.get_item(TableName=self.name, Key=attributes(key), ConsistentRead=is_consistent)
        return plain_item(found["Item"]) if "Item" in found else None

    def get_all(self, keys: Sequence[Item], *, is_consistent: bool = True) -> Iterator[Item]:
        """Yield the existing items of keys in any order, 100 in a call. Raises `ItemBusy`."""
        for start in range(0, len(keys), MAXIMUM_KEYS):
            wanted = {self.name: keys[start : start + MAXIMUM_KEYS]}
            yield from self.get_across(wanted, is_consistent=is_consistent)[self.name]

    def get_across(self, keys: Mapping[str, Sequence[Item]], *, is_consistent: bool = True) -> dict[str, list[Item]]:
        """Return the existing items of this and other tables by table name, in one BatchGetItem of at most 100 keys.

        Raises `ItemBusy`.
        """
        found: dict[str, list[Item]] = {name: [] for name in keys}
        left: Mapping[str, Any] = {
            name: {"Keys": list(map(attributes, wanted)), "ConsistentRead": is_consistent}
            for name, wanted in keys.items()
            if wanted
        }
        for _ in self.backoff.attempts():
            answer = self.client.batch_get_item(RequestItems=left)
            for name, items in answer["Responses"].items():
                found[name] += map(plain_item, items)
            left = answer["UnprocessedKeys"]
            if not left:
                return found
        raise ItemBusy(f"tables {', '.join(map(repr, left))} returned no result for some of the keys")

    def query(self, condition: Expression, **options: Any) -> Iterator[Item]:  # noqa: ANN401 - those of `pages`
        """Yield the items of a condition on the key, with the options of `pages`."""
        return chain.from_iterable(self.pages(condition, **options))

    def of_kind(self, kind: str, which: Expression | None = None) -> Iterator[Item]:
        """Yield the items with this `kind`, which the index `by_kind` lists by `pk`, eventually consistent.

        `which` is a condition on `pk`.
        """
        of_kind = attr("kind").eq(kind)
        return self.query(of_kind & which if which else of_kind, index=BY_KIND_INDEX)

    def pages(
        self,
        condition: Expression,
        *,
        only: Sequence[str] = (),
        where: Expression | None = None,
        is_consistent: bool = True,
        index: str | None = None,
        **options: Any,  # noqa: ANN401 - of several types
    ) -> Iterator[list[Item]]:
        """Yield the items of a condition on the key, page by page, as they are needed.

        `only` names the attributes to return, `where` is a condition on other attributes, and the options are further
        parameters of Query. A read of an index is eventually consistent.
        """
        request = options | self._request(KeyConditionExpression=condition, FilterExpression=where, only=only)
        request |= {"IndexName": index} if index else {"ConsistentRead": is_consistent}
        while True:
            page = self.client.query(**request)
            yield list(map(plain_item, page["Items"]))
            if not page.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def write(self, write: Put | Delete | Update) -> bool:
        """Execute a write; return whether its condition held. Raises `ItemBusy`."""
        return self._written(write) is not None

    def write_unless_busy(self, write: Put | Delete | Update) -> bool:
        """Execute a write as `write` does, again while transactions write to its item. Raises `ItemBusy`."""
        for _ in self.backoff.attempts():
            with suppress(ItemBusy):
                return self.write(write)
        raise ItemBusy("concurrent transactions write to the same record")

    def written(
        self, write: Put | Delete | Update, returned: Literal["ALL_NEW", "ALL_OLD", "UPDATED_NEW"] = "ALL_NEW"
    ) -> Item | None:
        """Execute a write; return the new or old item, or None when its condition failed. Raises `ItemBusy`."""
        answer = self._written(write, ReturnValues=returned)
        return None if answer is None else plain_item(answer.get("Attributes", {}))

    def _written(self, write: Put | Delete | Update, **options: str) -> Mapping[str, Any] | None:
        call = getattr(self.client, f"{write.operation.lower()}_item")
        try:
            return cast("Mapping[str, Any]", call(**self.request(write), **options))
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == TRANSACTION_CONFLICT + EXCEPTION:
                raise ItemBusy("a concurrent transaction writes to the same record") from error
            if code != CONDITION_FAILED + EXCEPTION:
                raise
            return None

    def request(self, write: Write) -> dict[str, Any]:
        """Return the parameters of a write."""
        if isinstance(write, Put):
            return self._request(ConditionExpression=write.condition) | {"Item": attributes(write.item)}
        update = write if isinstance(write, Update) else None
        return self._request(ConditionExpression=write.condition, update=update) | {"Key": attributes(write.key)}

    def _request(
        self, *, only: Sequence[str] = (), update: Update | None = None, **expressions: Expression | None
    ) -> dict[str, Any]:
        placeholders = Placeholders()
        request: dict[str, Any] = {"TableName": self.name}
        request |= {name: placeholders.text(one) for name, one in expressions.items() if one is not None}
        if only:
            request["ProjectionExpression"] = ", ".join(map(placeholders.text, map(attr, only)))
        if update is not None:
            request["UpdateExpression"] = update.text(placeholders)
        if placeholders.names:
            names = {placeholder: name for name, placeholder in placeholders.names.items()}
            request["ExpressionAttributeNames"] = names
        if placeholders.values:
            request["ExpressionAttributeValues"] = attributes(placeholders.values)
        return request

    def write_all(self, writes: Iterable[Put | Delete]) -> None:
        """Execute writes of different items, without conditions, 25 in a call. Raises `ItemBusy`; some may be done."""
        left = iter(writes)
        while batch := list(islice(left, MAXIMUM_WRITES)):
            self._write_batch(batch)

    def delete_all(self, condition: Expression, *, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Delete the items of a condition on the key, 25 in a call; return False if `is_over` before the last one.

        Raises `ItemBusy`.
        """
        keys = self.query(condition, only=["pk", "sk"])
        while not is_over():
            some = list(islice(keys, MAXIMUM_WRITES))
            if not some:
                return True
            self._write_batch(list(map(Delete, some)))
        return False

    def _write_batch(self, batch: Sequence[Put | Delete]) -> None:
        left: Any = [
            {"PutRequest": {"Item": attributes(one.item)}}
            if isinstance(one, Put)
            else {"DeleteRequest": {"Key": attributes(one.key)}}
            for one in batch
        ]
        for _ in self.backoff.attempts():
            left = self.client.batch_write_item(RequestItems={self.name: left})["UnprocessedItems"].get(self.name)
            if not left:
                return
        raise ItemBusy(f"table {self.name!r} did not take {len(left)} writes")

    def transact(self, *writes: Write, units_a_second: int | None = None) -> Sequence[bool]:
        """Execute all writes or none; return, in their order, whether the condition of each held.

        With `units_a_second`, wait after a large transaction until as many units may be written again, those of indexes
        included. Raises `ItemBusy`.
        """
        return transact([(self, write) for write in writes], units_a_second=units_a_second)


def transact(writes: Sequence[tuple[DynamoTable, Write]], *, units_a_second: int | None = None) -> Sequence[bool]:
    """Execute all writes to tables or none, as `DynamoTable.transact` does. Raises `ItemBusy`."""
    counted: Any = {} if units_a_second is None else {"ReturnConsumedCapacity": "TOTAL"}
    items: Any = [{write.operation: table.request(write)} for table, write in writes]
    try:
        answer = writes[0][0].client.transact_write_items(TransactItems=items, **counted)
    except ClientError as error:
        codes = reasons(error)
        if not BUSY.isdisjoint(codes) or error.response["Error"]["Code"] == TRANSACTION_CONFLICT + EXCEPTION:
            names = ", ".join(sorted({table.name for table, _ in writes}))
            raise ItemBusy(f"a concurrent transaction writes to the same records of {names}") from error
        if CONDITION_FAILED not in codes:
            raise
        return [code != CONDITION_FAILED for code in codes]
    units = sum(one["CapacityUnits"] for one in answer.get("ConsumedCapacity", [])) if units_a_second else 0
    if units_a_second and units > SMALL_TRANSACTION:
        writes[0][0].backoff.clock.sleep(units / units_a_second)
    return [True] * len(writes)


def reasons(error: ClientError) -> Sequence[str]:
    """Return the cancellation codes of a transaction's writes, in their order; empty for any other error."""
    # The stubs type CancellationReasons for one operation only.
    found = cast("list[dict[str, str]]", error.response.get("CancellationReasons", []))
    return [reason.get("Code", "") for reason in found]


def attributes(item: Mapping[str, object]) -> dict[str, Any]:
    """Return an item with DynamoDB's types. Raises `TypeError` for a value without one, such as a float."""
    return {name: _attribute(value) for name, value in item.items()}


def _attribute(value: Any) -> dict[str, Any]:  # noqa: ANN401 - of any type
    name, convert = _written_as(value.__class__)
    return {name: convert(value)}


@cache
def _written_as(kind: type) -> "tuple[str, Callable[[Any], Any]]":
    for kinds, name, convert in _TYPES:
        if issubclass(kind, kinds):
            return name, convert
    raise TypeError(f"no attribute of our tables has the type {kind.__name__}")


_TYPES: "Sequence[tuple[tuple[type, ...], str, Callable[[Any], Any]]]" = (
    ((str,), "S", lambda text: text),
    ((bool,), "BOOL", bool),
    ((int, Decimal), "N", str),
    ((bytes,), "B", bytes),
    ((Mapping,), "M", attributes),
    ((list, tuple), "L", lambda values: list(map(_attribute, values))),
    ((set,), "SS", sorted),
)


def plain_item(item: Mapping[str, Mapping[str, Any]]) -> Item:
    """Return an item without DynamoDB's types: numbers are `Decimal`."""
    return {name: _plain(*next(iter(value.items()))) for name, value in item.items()}


def _plain(kind: str, value: Any) -> object:  # noqa: ANN401 - of any type
    if kind == "N":
        return Decimal(value)
    if kind == "M":
        return plain_item(value)
    if kind == "L":
        return [_plain(*next(iter(one.items()))) for one in value]
    return set(value) if kind == "SS" else value
