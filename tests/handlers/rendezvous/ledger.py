"""A ledger of the AWS calls of functions: their units in DynamoDB, by the sizes of items and the changes of indexes."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import boto3
import pytest
from boto3.dynamodb.types import TypeSerializer
from botocore.client import BaseClient

from signalbox.rendezvous.model.states import OfferPool

WRITE_BYTES, READ_BYTES = 1024, 4096
# SQS's receipt handles are longer than those of moto; one of a queue in us-east-1 was 412 characters long.
RECEIPT_HANDLE_BYTES = 412
Item = Mapping[str, Any]  # as boto3's Table has it


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, the kind of its item or its index, and its units in DynamoDB."""

    function: str
    operation: str
    of: str
    writes: int = 0
    reads: float = 0

    @property
    def kind(self) -> tuple[str, str, str]:
        """Return the function, the operation and the kind of item."""
        return (self.function, self.operation, self.of)


@dataclass(slots=True)
class Ledger:
    """The calls within a context, of the threads of `function`."""

    calls: list[Call] = field(default_factory=list)
    function: str | None = None

    @contextmanager
    def of(self, function: str) -> Iterator[None]:
        """Ascribe the calls, also of threads that the function starts, to a function."""
        self.function = function
        yield
        self.function = None

    def by_kind(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Return the number of calls and their write units, by function, operation and kind of item."""
        numbers: Counter[tuple[str, str, str]] = Counter()
        writes: Counter[tuple[str, str, str]] = Counter()
        for call in self.calls:
            numbers[call.kind] += 1
            writes[call.kind] += call.writes
        return {kind: (number, writes[kind]) for kind, number in numbers.items()}


@contextmanager
def ledger() -> Iterator[Ledger]:
    """Yield the ledger of all calls of functions within the context."""
    kept = Ledger()
    make = BaseClient._make_api_call

    def record(client: BaseClient, operation: str, request: dict[str, Any]) -> Any:
        function = kept.function
        if function is None:
            return make(client, operation, request)
        before = _stored(make, request)
        try:
            response = make(client, operation, request)
        finally:
            if operation not in READS:
                units = _write_units(request, before, _stored(make, request))
                kept.calls.append(Call(function, operation, kind_of(request), writes=units))
        if operation in READS:
            kept.calls.append(Call(function, operation, kind_of(request), reads=_read_units(request, response)))
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", record)
        yield kept


READS = ("GetItem", "Query")


def kind_of(request: Mapping[str, Any]) -> str:
    """Return the kind of item, such as `offer`, or the index; empty for another service."""
    if "IndexName" in request:
        return str(request["IndexName"])
    if "TableName" not in request:
        return ""
    key = _key(request)
    if key is None:  # a query of a partition
        (partition,) = (value["S"] for name, value in request["ExpressionAttributeValues"].items() if name == ":v0")
        return _of_partition(partition)
    if request["TableName"] == "Leases":
        return "lease"
    return _of_partition(str(key["pk"]))


def _of_partition(partition: str) -> str:
    return "offer" if partition in tuple(OfferPool) else partition.partition("#")[0]


def _key(request: Mapping[str, Any]) -> Item | None:
    found = request.get("Key") or request.get("Item")
    if "TableName" not in request or found is None:
        return None
    names = ("queue_name",) if request["TableName"] == "Leases" else ("pk", "sk")
    return {name: _plain(found[name]) for name in names}


def _plain(value: object) -> object:
    return value["S"] if isinstance(value, dict) else value


def _stored(make: Callable[..., Any], request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the stored item of a call to a table, with the types of DynamoDB."""
    key = _key(request)
    if key is None:
        return None
    typed = {name: TypeSerializer().serialize(value) for name, value in key.items()}
    item = make(_reader(), "GetItem", {"TableName": request["TableName"], "Key": typed}).get("Item")
    return dict(item) if item else None


@cache
def _reader() -> BaseClient:
    return boto3.client("dynamodb")


def _write_units(request: Mapping[str, Any], before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> int:
    """Return the units of a write, also of one whose condition failed, with those of the table's index.

    Source: DynamoDB's developer guide, «Read/write capacity» (the larger of the two sizes) and «Global secondary
    indexes» (a new or removed entry is one write, a changed key two, a changed projected attribute one).
    """
    if "TableName" not in request:
        return 0
    size = max(_size(before), _size(after), 1)
    return math.ceil(size / WRITE_BYTES) + _index_writes(str(request["TableName"]), before, after)


INDEXES: Mapping[str, tuple[tuple[str, str], tuple[str, ...]]] = {
    "Leases": (("capability", "due_at"), ("queue_url",)),
}


def _index_writes(table: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> int:
    if table not in INDEXES:
        return 0
    key, listed = INDEXES[table]
    old, new = (_entry(item, key, listed) for item in (before, after))
    if old == new:
        return 0
    if old is None or new is None or old[: len(key)] == new[: len(key)]:
        return 1
    return 2


def _entry(item: Mapping[str, Any] | None, key: tuple[str, str], listed: tuple[str, ...]) -> list[object] | None:
    if item is None or not set(key) <= item.keys():
        return None
    return [item.get(name) for name in (*key, *listed)]


def _read_units(request: Mapping[str, Any], response: Mapping[str, Any]) -> float:
    items = response["Items"] if "Items" in response else [response.get("Item")]
    size = max(sum(_size(item) for item in items), 1)
    return math.ceil(size / READ_BYTES) * (1 if request.get("ConsistentRead") else 0.5)


def _size(item: Mapping[str, Any] | None) -> int:
    """Return DynamoDB's size of an item: names and values; a number takes a byte for two digits, and one more."""
    return sum(len(name) + _value_size(name, value) for name, value in (item or {}).items())


def _value_size(name: str, value: object) -> int:
    if name == "receipt_handle":
        return RECEIPT_HANDLE_BYTES
    content = next(iter(value.values())) if isinstance(value, dict) else value
    if isinstance(content, Mapping):
        return 3 + _size(content)
    if isinstance(content, (str, bytes)) and not (isinstance(value, dict) and "N" in value):
        return len(content)  # of texts in ASCII
    return len(str(content)) // 2 + 2 if isinstance(content, (str, int, Decimal)) else len(bytes(content))
