"""The clients of AWS that the functions use, joined to the simulated services: no bytes and no HTTP in between."""

from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from boto3.dynamodb.conditions import ConditionBase, ConditionExpressionBuilder
from botocore.client import BaseClient
from botocore.session import get_session

from tests.simulation import values
from tests.simulation.calls import Calls, client_error
from tests.simulation.services import Answer, Refusal

NAMES, VALUES = "ExpressionAttributeNames", "ExpressionAttributeValues"
ITEMS = ("Item", "Key", "ExclusiveStartKey", VALUES)
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


class PlainClient:
    """The client of a table of boto3: it takes and returns plain values."""

    def __init__(self, calls: Callable[[], Calls]) -> None:
        self._calls = calls
        self.exceptions = shared_client("dynamodb").exceptions

    def __getattr__(self, name: str) -> Any:
        operation = "".join(word.capitalize() for word in name.split("_"))

        def call(**request: Any) -> Answer:
            try:
                answer = self._calls().make("dynamodb", operation, _with_text(request))
            except Refusal as refusal:
                raise client_error(shared_client("dynamodb"), operation, refusal) from None
            return converted(answer, values.returned)

        return call


class PlainTable:
    """A table of boto3."""

    def __init__(self, client: PlainClient, name: str) -> None:
        self.name = self.table_name = name
        self.meta = SimpleNamespace(client=client)

    def __getattr__(self, operation: str) -> Any:
        call = getattr(self.meta.client, operation)
        return lambda **request: call(TableName=self.name, **request)


def _with_text(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request whose conditions are texts, as boto3 makes them."""
    found, builder = dict(request), ConditionExpressionBuilder()
    for name in ("ConditionExpression", "FilterExpression", "KeyConditionExpression"):
        if isinstance(found.get(name), ConditionBase):
            built = builder.build_expression(found[name], is_key_condition=name.startswith("Key"))
            found[name] = built.condition_expression
            found[NAMES] = {**found.get(NAMES, {}), **built.attribute_name_placeholders}
            found[VALUES] = {**found.get(VALUES, {}), **built.attribute_value_placeholders}
    return found


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
