"""The clients of AWS that the functions use, joined to the simulated services: no bytes and no HTTP in between."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from botocore.client import BaseClient
from botocore.session import get_session

from tests.simulation import values
from tests.simulation.calls import Calls, client_error
from tests.simulation.services import Answer, Refusal

ITEMS = ("Item", "Key", "ExclusiveStartKey", "ExpressionAttributeValues")
Convert = Callable[[Any], Any]


def make_api_call(calls: Calls, client: BaseClient, operation: str, request: dict[str, Any]) -> Answer:
    """Make a call as `BaseClient._make_api_call` does, without bytes and HTTP."""
    service = client.meta.service_model.service_name
    attempts = (client.meta.config.retries or {}).get("total_max_attempts")
    try:
        if service != "dynamodb":
            return calls.make(service, operation, request, attempts=attempts)
        answer = calls.make(service, operation, converted(request, from_typed_item), attempts=attempts)
        return converted(answer, to_typed_item)
    except Refusal as refusal:
        raise client_error(client, operation, refusal) from None


def from_typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.from_typed(value) for name, value in item.items()}


def to_typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.to_typed(value) for name, value in item.items()}


def converted(document: Mapping[str, Any], convert: Convert) -> dict[str, Any]:
    """Return a request or an answer of DynamoDB with all its items converted."""
    found = dict(document)
    for name in (*ITEMS, "Attributes", "LastEvaluatedKey"):
        if name in found:
            found[name] = convert(found[name])
    if "Items" in found:
        found["Items"] = [convert(item) for item in found["Items"]]
    if "TransactItems" in found:
        found["TransactItems"] = [
            {kind: converted(write, convert) for kind, write in one.items()} for one in found["TransactItems"]
        ]
    for name in ("RequestItems", "UnprocessedItems", "UnprocessedKeys"):
        if name in found:
            found[name] = {table: _of_table(part, convert) for table, part in found[name].items()}
    if "Responses" in found:
        found["Responses"] = {name: [convert(item) for item in items] for name, items in found["Responses"].items()}
    return found


def _of_table(part: Any, convert: Convert) -> Any:
    if isinstance(part, Mapping):
        return {**part, "Keys": [convert(key) for key in part["Keys"]]}
    return [{kind: converted(write, convert) for kind, write in one.items()} for one in part]


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
    return _session().create_client(service, region_name="us-east-1", config=config)


class SharedSession:
    """botocore's session, whose clients all instances share."""

    def create_client(self, service: str, *_: object, config: Any = None, **__: object) -> Any:
        return shared_client(service, (config.retries or {}).get("total_max_attempts") if config else None)
