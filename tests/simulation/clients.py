"""The clients of AWS that the functions use, joined to the simulated services: no bytes and no HTTP in between."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from botocore.client import BaseClient
from botocore.session import get_session

from tests.simulation import values
from tests.simulation.calls import Calls, client_error
from tests.simulation.services import Answer, Refusal

Convert = Callable[[Any], Any]


def make_api_call(calls: Calls, client: BaseClient, operation: str, request: dict[str, Any]) -> Answer:
    """Make a call as `BaseClient._make_api_call` does, without bytes and HTTP."""
    service, attempts = _settings(client)
    try:
        if service != "dynamodb":
            return calls.make(service, operation, request, attempts=attempts)
        answer = calls.make(service, operation, converted(request, from_typed_item), attempts=attempts)
        return converted(answer, to_typed_item)
    except Refusal as refusal:
        raise client_error(client, operation, refusal) from None


@cache
def _settings(client: BaseClient) -> tuple[str, int | None]:
    """Return the service of a client, and its attempts of a call, if they are not the usual ones."""
    return client.meta.service_model.service_name, (client.meta.config.retries or {}).get("total_max_attempts")


def from_typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.from_typed(value) for name, value in item.items()}


def to_typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.to_typed(value) for name, value in item.items()}


def converted(document: Mapping[str, Any], convert: Convert) -> dict[str, Any]:
    """Return a request or an answer of DynamoDB with all its items converted."""
    return {name: _CONVERTED[name](part, convert) if name in _CONVERTED else part for name, part in document.items()}


def _item(item: Any, convert: Convert) -> Any:
    return convert(item)


def _items(items: Any, convert: Convert) -> Any:
    return list(map(convert, items))


def _writes(writes: Any, convert: Convert) -> Any:
    return [{kind: converted(write, convert) for kind, write in one.items()} for one in writes]


def _responses(found: Any, convert: Convert) -> Any:
    return {table: _items(items, convert) for table, items in found.items()}


def _batches(parts: Any, convert: Convert) -> Any:
    """Return the parts of a batch by table: the keys to read, with options, or the writes."""
    return {
        table: converted(part, convert) if isinstance(part, dict) else _writes(part, convert)
        for table, part in parts.items()
    }


_CONVERTED: Mapping[str, Callable[[Any, Convert], Any]] = {
    **dict.fromkeys(("Item", "Key", "ExclusiveStartKey", "ExpressionAttributeValues"), _item),
    **dict.fromkeys(("Attributes", "LastEvaluatedKey"), _item),
    **dict.fromkeys(("Items", "Keys"), _items),
    "TransactItems": _writes,
    **dict.fromkeys(("RequestItems", "UnprocessedItems", "UnprocessedKeys"), _batches),
    "Responses": _responses,
}


class SetUpClient:
    """DynamoDB's client for the set-up of a stage, before any instance runs."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        operation = "".join(word.capitalize() for word in name.split("_"))
        return lambda **request: make_api_call(self._calls, shared_client("dynamodb"), operation, request)


@cache
def _session() -> Any:
    return get_session()


@cache
def shared_client(service: str, retries: int | None = None) -> Any:
    """Return one of the clients that all instances share: they have no state."""
    from botocore.config import Config  # noqa: PLC0415

    config = Config(retries={"total_max_attempts": retries}) if retries else None
    client = _session().create_client(service, region_name="us-east-1", config=config)
    client.get_paginator = cache(client.get_paginator)  # which makes a class with its docstring
    return client


class SharedSession:
    """botocore's session, whose clients all instances share."""

    def create_client(self, service: str, *_: object, config: Any = None, **__: object) -> Any:
        return shared_client(service, (config.retries or {}).get("total_max_attempts") if config else None)
