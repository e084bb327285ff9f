"""The units that AWS bills for the calls of functions, recorded from their clients."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.client import BaseClient

from signalbox.history.prices import SQS, USAGES

READS, WRITES = "DynamoDB read unit", "DynamoDB write unit"


@contextmanager
def billed_units() -> Iterator[Counter[str]]:
    """Yield the units that are billed within the context, by billed item; items are at most 1 KB to write, 4 to read.

    A consistent read is one unit, any other half a unit; a transaction writes each item twice. A message that is sent
    is three requests, since its function receives and deletes it. Calls that tests make as Lambda are not counted.
    """
    units: Counter[str] = Counter()
    make = BaseClient._make_api_call

    def record(client: BaseClient, operation: str, request: dict[str, Any]) -> Any:
        units.update(_UNITS.get(operation, _nothing)(request))
        return make(client, operation, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", record)
        yield units


@contextmanager
def recorded_calls() -> Iterator[list[str]]:
    """Yield the calls of AWS within the context, such as `s3.PutObject`."""
    calls: list[str] = []
    make = BaseClient._make_api_call

    def record(client: BaseClient, operation: str, request: dict[str, Any]) -> Any:
        calls.append(f"{client.meta.service_model.service_name}.{operation}")
        return make(client, operation, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", record)
        yield calls


def priced_units(*actions: tuple[str, str], is_warm: bool = False) -> dict[str, float]:
    """Return the upper bounds of the units of SQS and DynamoDB that the cost report assumes for actions together.

    Those of reads are the lower bounds with `is_warm`, for functions that have just read what they may keep.
    """
    items = {SQS: SQS, "SQS standard request": SQS, READS: READS, WRITES: WRITES}
    units: Counter[str] = Counter()
    for usage in USAGES:
        if usage.item in items:
            each = usage.least if is_warm and usage.item == READS else usage.most
            units[items[usage.item]] += each * actions.count((usage.capability, usage.what))
    return {item: number for item, number in units.items() if number}


def _nothing(_: Mapping[str, Any]) -> Mapping[str, float]:
    return {}


def _reads(request: Mapping[str, Any]) -> Mapping[str, float]:
    return {READS: 1 if request.get("ConsistentRead") else 0.5}


def _many_reads(request: Mapping[str, Any]) -> Mapping[str, float]:
    tables = request["RequestItems"].values()
    return {READS: sum(len(table["Keys"]) * (1 if table.get("ConsistentRead") else 0.5) for table in tables)}


_UNITS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, float]]] = {
    **dict.fromkeys(("SendMessage", "SendMessageBatch"), lambda _: {SQS: 3}),
    **dict.fromkeys(("GetItem", "Query"), _reads),
    "BatchGetItem": _many_reads,
    **dict.fromkeys(("PutItem", "UpdateItem", "DeleteItem"), lambda _: {WRITES: 1}),
    "BatchWriteItem": lambda request: {WRITES: sum(map(len, request["RequestItems"].values()))},
    "TransactWriteItems": lambda request: {WRITES: 2 * len(request["TransactItems"])},
}
